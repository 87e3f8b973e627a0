"""Uses of onnxruntime's less common names: functions that succeed with onnxruntime and with treadle's alias.

test_onnxruntime_names.py runs this file as a program in a process of each. It prints a dict from the functions' names to
what went wrong, or to "".
"""

import json
import os
import sys
import tempfile
import traceback
import warnings

import models
import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.capi import _pybind_state as C  # noqa: N812
from onnxruntime.capi import onnxruntime_inference_collection as collection
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, OrtValueVector

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([10, 20, 30], np.float32)
CPU = C.OrtDevice(C.OrtDevice.cpu(), C.OrtDevice.default_memory(), 0)


def session(data=None, options=None):
    return ort.InferenceSession(data or models.add(), options, providers=["CPUExecutionProvider"])


def raised(call, kind=Exception):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__} was raised")


def named_value(array):
    return ort.OrtValue.ortvalue_from_numpy(array)


def vectors_of_values():
    vector = OrtValueVector()
    vector.reserve(2)
    vector.push_back(named_value(X)._get_c_value())
    vector.push_back(np.array([True, False]).__dlpack__())
    vector.shrink_to_fit()
    assert len(vector) == 2 and [v.data_type() for v in vector] == ["tensor(float)", "tensor(bool)"]
    assert vector.element_type_at(1) == 9
    assert len(vector.to_dlpacks(None)) == 2 and vector.to_dlpacks(lambda capsule: 7) == [7, 7]
    again = C.OrtValue.from_dlpack(vector.dlpack_at(0))
    assert again.data_ptr() == vector[0].data_ptr() == X.ctypes.data
    raised(lambda: vector[2], IndexError)


def vectors_on_memory():
    vector = OrtValueVector()
    vector.push_back_batch([Y], [Y.ctypes.data], [np.float32], [[3]], [CPU])
    assert vector[0].data_ptr() == Y.ctypes.data and vector[0].numpy().tolist() == Y.tolist()


def runs_from_values_to_values():
    s = session()
    feeds = {"x": named_value(X)._get_c_value(), "y": named_value(Y)._get_c_value()}
    results = s._sess.run_with_ort_values(feeds, ["z"], ort.RunOptions())
    assert isinstance(results, OrtValueVector) and np.array_equal(results[0].numpy(), X + Y)
    raised(lambda: s._sess.run_with_ort_values(feeds, [], None), InvalidArgument)
    values = [ort.OrtValue(v) for v in results]
    assert np.array_equal(values[0].numpy(), X + Y)


def runs_from_vectors_to_vectors():
    feeds, fetches = OrtValueVector(), OrtValueVector()
    for array in (X, Y):
        feeds.push_back(named_value(array)._ortvalue)
    session().run_with_ortvaluevector(ort.RunOptions(), ["x", "y"], feeds, ["z"], fetches, [CPU])
    assert len(fetches) == 1 and np.array_equal(fetches[0].numpy(), X + Y)


def bindings_give_vectors():
    s = session()
    binding = s.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("y", Y)
    binding.bind_output("z")
    s.run_with_iobinding(binding)
    outputs = binding.get_outputs_as_ortvaluevector()
    assert isinstance(outputs, OrtValueVector) and np.array_equal(outputs[0].numpy(), X + Y)


def inner_bindings():
    s = session()
    binding = C.SessionIOBinding(s._sess)
    binding.bind_ortvalue_input("x", C.OrtValue.ortvalue_from_numpy(X, CPU))
    binding.bind_input("y", CPU, np.float32, [3], Y.ctypes.data)
    z = np.zeros_like(X)
    for memory in ((), (np.float32, [2, 3], z.ctypes.data)):
        binding.bind_output("z", CPU, *memory)
        s._sess.run_with_iobinding(binding, None)
        assert np.array_equal(binding.get_outputs()[0].numpy(), X + Y)
    assert np.array_equal(z, X + Y)


def memory_of_strings_is_not_bound():
    s = session(models.identity(onnx.TensorProto.STRING, [2]))
    binding = s.io_binding()
    for kind in (8, np.object_, np.str_):
        words = "Only binding non-string Tensors"
        assert words in raised(lambda k=kind: binding.bind_input("x", "cpu", 0, k, [2], 64), RuntimeError)
        assert words in raised(lambda k=kind: binding.bind_output("y", "cpu", 0, k, [2], 64), RuntimeError)


def arrays_share_memory():
    for array in (X, np.array([1, 2], np.int64), np.array([True, False])):
        value = named_value(array)
        shared = np.asarray(value)
        assert shared.ctypes.data == value.data_ptr() == array.ctypes.data and shared.dtype == array.dtype
        assert np.array_equal(shared, array)
        assert np.asarray(value, array.dtype).ctypes.data == array.ctypes.data
        assert np.asarray(value, np.float64).dtype == np.float64
        assert np.array(value).ctypes.data != array.ctypes.data
        del value
        assert np.array_equal(shared, array)
    assert np.asarray(named_value(np.zeros((2, 0), np.float32))).shape == (2, 0)


def what_is_written_to_the_array_is_read_by_runs():
    given = X.copy()
    value = named_value(given)
    np.asarray(value)[:] = 1
    assert (given == 1).all()
    (z,) = session().run(None, {"x": value, "y": Y})
    assert np.array_equal(z, 1 + np.stack([Y, Y]))


def capsules():
    value = named_value(X)
    for capsule in (value._ortvalue.to_dlpack(), value._ortvalue.__dlpack__()):
        again = C.OrtValue.from_dlpack(capsule)
        assert again.data_ptr() == value.data_ptr()
    for array in (np.ones(2, np.uint8), np.ones(2, bool)):
        assert C.OrtValue.from_dlpack(array.__dlpack__()).data_type() == named_value(array).data_type()
    assert value._ortvalue.__dlpack_device__() == (1, 0)
    for shape in ((1, 8, 0, 2), (0,), (4, 0)):
        again = C.OrtValue.from_dlpack(named_value(np.zeros(shape, np.float32))._ortvalue.to_dlpack())
        assert list(again.shape()) == list(shape)


def devices():
    assert [getattr(C.OrtDevice, n)() for n in "cpu gpu cuda webgpu fpga npu cann dml default_memory".split()] == [
        0, 1, 1, 1, 2, 3, 3, 4, 0,
    ]  # fmt: skip
    assert (CPU.device_type(), CPU.mem_type(), CPU.vendor_id(), CPU.device_id()) == (0, 0, 0, 0)
    full = C.OrtDevice(1, 5, 0x10DE, 3)
    assert (full.device_type(), full.mem_type(), full.vendor_id(), full.device_id()) == (1, 5, 0x10DE, 3)
    cpu, cuda = ort.OrtDevice.make("cpu", 0), ort.OrtDevice.make("cuda", 1)
    assert cpu.device_vendor_id() == ort.OrtDeviceVendorId.NONE and cpu.device_mem_type() == 0
    assert cuda.device_vendor_id() == ort.OrtDeviceVendorId.NVIDIA == 0x10DE and cuda.device_id() == 1
    assert ort.OrtDevice.make("gpu", 0, 0x1002).device_vendor_id() == ort.OrtDeviceVendorId.AMD
    raised(lambda: ort.OrtDevice.make("abacus", 0))
    raised(lambda: C.OrtDevice(0, 0), TypeError)
    raised(lambda: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0))
    values = {int(member) for member in ort.OrtDeviceVendorId}
    assert values == {0, 0x1002, 0x10DE, 0x13B5, 0x1414, 0x19E5, 0x5143, 0x8086}


def descriptions_of_memory():
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    other = ort.OrtMemoryInfo.create_v2(
        "Test", ort.OrtMemoryInfoDeviceType.CPU, 0, 0, ort.OrtDeviceMemoryType.DEFAULT, 128,
        ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR,
    )  # fmt: skip
    assert (info.name, other.name) == ("Cpu", "Test")
    for one in (info, other):
        assert one.device_id == one.device_vendor_id == 0
        assert one.mem_type == ort.OrtMemType.DEFAULT and one.device_mem_type == ort.OrtDeviceMemoryType.DEFAULT
        assert one.allocator_type == ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    raised(
        lambda: ort.OrtMemoryInfo("Abacus", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT),
        RuntimeError,
    )
    ort.create_and_register_allocator(info, None)


def sizes_of_arenas():
    names = "max_mem arena_extend_strategy initial_chunk_size_bytes max_dead_bytes_per_chunk".split()
    config = ort.OrtArenaCfg(8, 0, 4, 2)
    assert [getattr(config, n) for n in names] == [8, 0, 4, 2] and config.initial_growth_chunk_size_bytes == -1
    config = ort.OrtArenaCfg({"max_mem": 32, "max_power_of_two_extend_bytes": 17})
    assert config.max_mem == 32 and config.max_power_of_two_extend_bytes == 17 and config.arena_extend_strategy == -1
    raised(lambda: ort.OrtArenaCfg({"size": 1}), RuntimeError)


def where_inputs_and_outputs_are():
    s = session()
    infos, outputs = s.get_input_memory_infos(), s.get_output_memory_infos()
    assert [info.name for info in infos] == ["Cpu", "Cpu"] and [info.name for info in outputs] == ["Cpu"]
    assert len(s.get_input_epdevices()) == 2
    (device,) = [d for d in ort.get_ep_devices() if d.ep_name == "CPUExecutionProvider"]
    assert device.device.type == ort.OrtHardwareDeviceType.CPU and isinstance(device.ep_metadata["version"], str)
    assert [d.vendor for d in C.get_hardware_devices()] == [device.device.vendor]


def arguments_of_providers():
    def check(providers, options, names, kept):
        found = collection.check_and_normalize_provider_args(providers, options, ["a", "b", "c"])
        assert found == (names, kept), found

    check(None, None, [], [])
    check([("a", {1: 2}), "b"], None, ["a", "b"], [{"1": "2"}, {}])
    check(["a", "b"], [{1: 2}, {}], ["a", "b"], [{"1": "2"}, {}])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check(["a", "d", "a"], [{"x": 1}, {}, {"y": 2}], ["a", "d"], [{"x": "1"}, {}])
    assert len(caught) == 2
    for wrong in ((3, None), ([3], None), (["a"], 3), (["a"], ["b"]), (["a", "b"], [{}]), ([("a", {})], [{}])):
        raised(lambda w=wrong: check(*w, [], []), ValueError)


def providers_of_options():
    options = ort.SessionOptions()
    assert not options.has_providers()
    options.add_provider("CPUExecutionProvider", {})
    assert options.has_providers()
    raised(lambda: options.add_provider("AbacusExecutionProvider", {}), RuntimeError)
    options = ort.SessionOptions()
    options.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    assert session(options=C.get_default_session_options()).run(None, {"x": X, "y": Y})


def values_are_updated():
    source = named_value(X)
    raised(lambda: ort.copy_tensors([source], []), RuntimeError)
    made = session().create_ortvalue_from_shape_and_type([2, 3], np.float32, "cpu")
    made.update_inplace(source)
    assert np.array_equal(made.numpy(), X)


def sessions_without_a_device_to_tune():
    s = session()
    assert s.get_tuning_results() == []
    s.release_captured_graph()
    raised(lambda: ort.register_execution_provider_library("a", "no such library"))
    raised(lambda: ort.unregister_execution_provider_library("a"), Fail)


def matrix_model():
    w, b = np.arange(64, dtype=np.float32).reshape(8, 8), np.ones(8, np.float32)
    nodes = [
        models.node("MatMul", ["x", "w"], ["t"], name="product"),
        models.node("Add", ["t", "b"], ["y"], name="sum"),
    ]
    initializers = [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(b, "b")]
    return models.model(
        nodes,
        [models.value("x", shape=[2, 8])],
        [models.value("y", shape=[2, 8])],
        opset=17,
        initializers=initializers,
    )


def optimised_models_with_weights_apart():
    """The second is written from the first, and runs when that is gone."""
    x = np.ones((2, 8), np.float32)
    (expected,) = session(matrix_model()).run(None, {"x": x})
    with tempfile.TemporaryDirectory() as folder:
        data = matrix_model()
        for name, least in (("one", 100), ("two", 10)):
            options = ort.SessionOptions()
            options.optimized_model_filepath = f"{folder}/{name}.onnx"
            options.add_session_config_entry("session.optimized_model_external_initializers_file_name", f"{name}.bin")
            options.add_session_config_entry(
                "session.optimized_model_external_initializers_min_size_in_bytes", str(least)
            )
            session(data, options)
            data = f"{folder}/{name}.onnx"
            assert os.path.getsize(f"{folder}/{name}.bin") >= 256
        os.remove(f"{folder}/one.onnx")
        os.remove(f"{folder}/one.bin")
        assert np.allclose(session(data).run(None, {"x": x})[0], expected)


def which_provider_runs_a_node():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    words = "'session.record_ep_graph_assignment_info' must be set to"
    assert words in raised(session(matrix_model(), options).get_provider_graph_assignment_info, Fail)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    found = session(matrix_model(), options).get_provider_graph_assignment_info()
    assert {part.ep_name for part in found} == {"CPUExecutionProvider"}
    nodes = {(node.domain, node.op_type, node.name) for part in found for node in part.get_nodes()}
    assert nodes == {("", "MatMul", "product"), ("", "Add", "sum")}


def what_the_package_says_of_itself():
    assert "Build Info" in ort.get_build_info()
    assert ort.package_name == "onnxruntime" and ort.version == ort.__version__ and ort.import_capi_exception is None
    assert ort.capi.onnxruntime_validation.check_distro_info() is None
    assert callable(ort.print_debug_info) and isinstance(ort.cuda_version, str)


def keys_of_maps():
    node = models.node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", int64_vocabulary=[1, 2])
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    x = onnx.helper.make_value_info("x", onnx.helper.make_map_type_proto(onnx.TensorProto.INT64, tensor))
    graph = onnx.helper.make_graph([node], "g", [x], [models.value("y", shape=[1, 2])])
    imports = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 1)]
    s = session(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
    for keys in ((1, 2), (np.int64(1), np.int32(2))):
        (y,) = s.run(None, {"x": dict.fromkeys(keys, 2.5)})
        assert y.ravel().tolist() == [2.5, 2.5]
    text = raised(lambda: s.run(None, {"x": {1: 2.0, "a": 1.0}}), RuntimeError)
    assert "Unexpected key type  <class 'str'>, it cannot be linked to C type int64_t" in text


def threads_of_the_process():
    """Comes last: it holds for all sessions that follow."""
    ort.set_global_thread_pool_sizes(2, 1)
    assert "already been created" in raised(lambda: ort.set_global_thread_pool_sizes(2, 1), Fail)
    raised(session, RuntimeError)
    options = ort.SessionOptions()
    options.use_per_session_threads = False
    assert np.array_equal(session(options=options).run(None, {"x": X, "y": Y})[0], X + Y)


FUNCTIONS = [
    vectors_of_values, vectors_on_memory, runs_from_values_to_values, runs_from_vectors_to_vectors, bindings_give_vectors,
    inner_bindings, memory_of_strings_is_not_bound, arrays_share_memory, what_is_written_to_the_array_is_read_by_runs,
    capsules, devices, descriptions_of_memory, sizes_of_arenas, where_inputs_and_outputs_are, arguments_of_providers,
    providers_of_options, values_are_updated, optimised_models_with_weights_apart,
    which_provider_runs_a_node,
    sessions_without_a_device_to_tune, what_the_package_says_of_itself,
    keys_of_maps, threads_of_the_process,
]  # fmt: skip


def found() -> dict[str, str]:
    problems = {}
    for function in FUNCTIONS:
        try:
            function()
            problems[function.__name__] = ""
        except Exception:
            problems[function.__name__] = traceback.format_exc()
    return problems


if __name__ == "__main__":
    with tempfile.TemporaryFile("w+") as output:
        json.dump(found(), output)
        output.seek(0)
        sys.stdout.write("\n" + output.read())
