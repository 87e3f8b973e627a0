"""Live streams for servers: `streams` defines a sequence, `kserve` serves it by the Open Inference Protocol v2."""
