"""Live streams for servers: `streams` says what a sequence is, `kserve` serves it by the Open Inference Protocol v2."""
