"""The results of sherpa-onnx for a recording, or for a text, with a model of one kind: KIND FOLDER RECORDING."""

import json
import pathlib
import sys
import wave

import numpy as np
import sherpa_onnx

kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
RATE = 16000
with wave.open(sys.argv[3]) as file:
    assert file.getframerate() == RATE
    audio = np.frombuffer(file.readframes(8 * RATE), "<i2").astype(np.float32) / 32768


def at(name: str) -> str:
    return str(folder / name)


def parts(name: str) -> dict[str, str]:
    return {part: at(f"{name}.{part}.onnx") for part in ("encoder", "decoder", "joiner")}


def recognise(recognizer) -> list:
    """Two recordings of unlike length as one batch."""
    streams = []
    for recording in (audio, audio[: audio.size // 3]):
        streams.append(recognizer.create_stream())
        streams[-1].accept_waveform(RATE, recording)
    recognizer.decode_streams(streams)
    return [[stream.result.text, list(stream.result.timestamps)] for stream in streams]


def zipformer_ctc():
    model = at("zipformer_ctc.onnx")
    return recognise(sherpa_onnx.OfflineRecognizer.from_zipformer_ctc(model, at("tokens.txt")))


def nemo_ctc():
    model = at("nemo_ctc.onnx")
    return recognise(sherpa_onnx.OfflineRecognizer.from_nemo_ctc(model, at("nemo_tokens.txt")))


def sense_voice():
    make = sherpa_onnx.OfflineRecognizer.from_sense_voice
    return recognise(make(at("sense_voice.onnx"), at("tokens.txt"), language="en", use_itn=True))


def transducer():
    make = sherpa_onnx.OfflineRecognizer.from_transducer
    methods = ("greedy_search", "modified_beam_search")
    files = parts("transducer")
    return [recognise(make(**files, tokens=at("tokens.txt"), decoding_method=method)) for method in methods]


def streaming_transducer():
    found = []
    for method in ("greedy_search", "modified_beam_search"):
        recognizer = sherpa_onnx.OnlineRecognizer.from_transducer(
            tokens=at("tokens.txt"), **parts("streaming_transducer"), num_threads=1, decoding_method=method
        )
        stream = recognizer.create_stream()
        for begin in range(0, audio.size, RATE // 5):
            stream.accept_waveform(RATE, audio[begin : begin + RATE // 5])
            while recognizer.is_ready(stream):
                recognizer.decode_stream(stream)
        found.append(recognizer.get_result(stream))
    return found


def speaker_embedding():
    config = sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=at("speaker_embedding.onnx"))
    extractor = sherpa_onnx.SpeakerEmbeddingExtractor(config)
    stream = extractor.create_stream()
    stream.accept_waveform(RATE, audio)
    stream.input_finished()
    return list(extractor.compute(stream))


def audio_tagging():
    zipformer = sherpa_onnx.OfflineZipformerAudioTaggingModelConfig(model=at("audio_tagging.onnx"))
    model = sherpa_onnx.AudioTaggingModelConfig(zipformer=zipformer)
    tagging = sherpa_onnx.AudioTagging(sherpa_onnx.AudioTaggingConfig(model=model, labels=at("labels.csv")))
    stream = tagging.create_stream()
    stream.accept_waveform(RATE, audio)
    return [[event.name, event.prob] for event in tagging.compute(stream)]


def denoiser():
    gtcrn = sherpa_onnx.OfflineSpeechDenoiserGtcrnModelConfig(model=at("denoiser.onnx"))
    model = sherpa_onnx.OfflineSpeechDenoiserModelConfig(gtcrn=gtcrn)
    run = sherpa_onnx.OfflineSpeechDenoiser(sherpa_onnx.OfflineSpeechDenoiserConfig(model=model)).run
    return list(run(audio, RATE).samples)[::50]


def punctuation():
    model = sherpa_onnx.OfflinePunctuationModelConfig(ct_transformer=at("punctuation.onnx"))
    punctuate = sherpa_onnx.OfflinePunctuation(sherpa_onnx.OfflinePunctuationConfig(model=model)).add_punctuation
    return punctuate("a b c hello d e f g x y z " * 5)


def speech():
    vits = sherpa_onnx.OfflineTtsVitsModelConfig(model=at("speech.onnx"), tokens=at("letters.txt"))
    config = sherpa_onnx.OfflineTtsConfig(model=sherpa_onnx.OfflineTtsModelConfig(vits=vits))
    made = sherpa_onnx.OfflineTts(config).generate("hello world. this is a loop", sid=0, speed=1.25)
    return [made.sample_rate, len(made.samples), list(made.samples)[::10]]


print(json.dumps(globals()[kind]()))
