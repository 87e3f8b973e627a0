//! The program client.c in Rust, which calls onnxruntime's table by positions, as bindings without its header do.

use std::ffi::{c_char, c_void, CStr, CString};
use std::mem::{size_of_val, transmute};
use std::ptr::{null, null_mut};

type Handle = *mut c_void;
type Status = *mut c_void;

#[repr(C)]
struct Base {
    get_api: extern "C" fn(u32) -> *const [*const c_void; 428],
    get_version: extern "C" fn() -> *const c_char,
}

#[repr(C)]
struct Allocator {
    version: u32,
    alloc: extern "C" fn(*mut Allocator, usize) -> *mut c_void,
    free: extern "C" fn(*mut Allocator, *mut c_void),
}

#[link(name = "onnxruntime")]
extern "C" {
    fn OrtGetApiBase() -> *const Base;
}

/// Calls the function at a position of the table with arguments of these types.
macro_rules! call {
    ($ort:expr, $at:literal ($($value:expr => $type:ty),*) -> $result:ty) => {
        unsafe { transmute::<*const c_void, extern "C" fn($($type),*) -> $result>((*$ort.table)[$at])($($value),*) }
    };
}

struct Ort {
    table: *const [*const c_void; 428],
    environment: Handle,
    memory: Handle,
    allocator: *mut Allocator,
    folder: String,
}

const FLOAT: i32 = 1;
const INT64: i32 = 7;
const STRING: i32 = 8;
const SEQUENCE: i32 = 2;

impl Ort {
    fn code(&self, status: Status) -> i32 {
        call!(self, 1(status => Status) -> i32)
    }
    fn message(&self, status: Status) -> String {
        let text = call!(self, 2(status => Status) -> *const c_char);
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
    fn check(&self, status: Status) {
        if !status.is_null() {
            panic!("error {}: {}", self.code(status), self.message(status));
        }
    }
    fn release_value(&self, value: Handle) {
        call!(self, 96(value => Handle) -> ())
    }
    fn release_session(&self, session: Handle) {
        call!(self, 95(session => Handle) -> ())
    }

    fn open(&self, name: &str) -> Handle {
        let path = CString::new(format!("{}/{name}", self.folder)).unwrap();
        let (mut options, mut session) = (null_mut(), null_mut());
        self.check(call!(self, 10(&mut options => *mut Handle) -> Status));
        self.check(call!(self, 24(options => Handle, 1 => i32) -> Status));
        self.check(call!(self, 7(self.environment => Handle, path.as_ptr() => *const c_char, options => Handle,
                                 &mut session => *mut Handle) -> Status));
        call!(self, 100(options => Handle) -> ());
        session
    }

    fn lend<T>(&self, data: &mut [T], dims: &[i64], element: i32) -> Handle {
        let mut value = null_mut();
        self.check(call!(self, 49(self.memory => Handle, data.as_mut_ptr().cast() => *mut c_void,
                                  size_of_val(data) => usize, dims.as_ptr() => *const i64, dims.len() => usize,
                                  element => i32, &mut value => *mut Handle) -> Status));
        value
    }

    fn run(&self, session: Handle, names: &[&CStr], inputs: &[Handle], output_names: &[&CStr],
           outputs: &mut [Handle]) -> Status {
        let pointers = |texts: &[&CStr]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (names, output_names) = (pointers(names), pointers(output_names));
        call!(self, 9(session => Handle, null() => *const c_void, names.as_ptr() => *const *const c_char,
                      inputs.as_ptr() => *const Handle, inputs.len() => usize,
                      output_names.as_ptr() => *const *const c_char, output_names.len() => usize,
                      outputs.as_mut_ptr() => *mut Handle) -> Status)
    }

    fn print_floats(&self, what: &str, value: Handle) {
        let (mut info, mut rank, mut count, mut data) = (null_mut(), 0usize, 0usize, null_mut::<f32>());
        self.check(call!(self, 65(value => Handle, &mut info => *mut Handle) -> Status));
        self.check(call!(self, 61(info => Handle, &mut rank => *mut usize) -> Status));
        let mut dims = vec![0i64; rank];
        self.check(call!(self, 62(info => Handle, dims.as_mut_ptr() => *mut i64, rank => usize) -> Status));
        self.check(call!(self, 64(info => Handle, &mut count => *mut usize) -> Status));
        call!(self, 99(info => Handle) -> ());
        self.check(call!(self, 51(value => Handle, &mut data => *mut *mut f32) -> Status));
        let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
        print!("{what} [{}]", dims.join(","));
        // A tensor without elements may be at no address.
        for i in 0..count {
            print!(" {:.4}", unsafe { data.add(i).read() });
        }
        println!();
    }

    fn describe(&self, session: Handle) {
        let mut count = 0usize;
        self.check(call!(self, 30(session => Handle, &mut count => *mut usize) -> Status));
        for i in 0..count {
            let (mut name, mut info, mut tensor) = (null_mut::<c_char>(), null_mut(), null_mut());
            let (mut element, mut rank) = (0i32, 0usize);
            self.check(call!(self, 36(session => Handle, i => usize, self.allocator => *mut Allocator,
                                      &mut name => *mut *mut c_char) -> Status));
            self.check(call!(self, 33(session => Handle, i => usize, &mut info => *mut Handle) -> Status));
            self.check(call!(self, 55(info => Handle, &mut tensor => *mut Handle) -> Status));
            self.check(call!(self, 60(tensor => Handle, &mut element => *mut i32) -> Status));
            self.check(call!(self, 61(tensor => Handle, &mut rank => *mut usize) -> Status));
            let mut symbols = vec![null::<c_char>(); rank];
            self.check(call!(self, 63(tensor => Handle, symbols.as_mut_ptr() => *mut *const c_char,
                                      rank => usize) -> Status));
            print!("input {} {element}", unsafe { CStr::from_ptr(name) }.to_string_lossy());
            for symbol in symbols {
                print!(" '{}'", unsafe { CStr::from_ptr(symbol) }.to_string_lossy());
            }
            println!();
            call!(self, 98(info => Handle) -> ());
            unsafe { ((*self.allocator).free)(self.allocator, name.cast()) };
        }
    }

    fn run_loop(&self) {
        let session = self.open("loop.onnx");
        self.describe(session);
        let (mut x, mut y, mut iterations) = ([1.0f32, -1.0, 0.5, 0.25, 2.0, -3.0], [0.0f32; 6], [4i64]);
        let inputs = [self.lend(&mut iterations, &[], INT64), self.lend(&mut x, &[2, 3], FLOAT)];
        let (names, output_names) = ([c"n", c"x"], [c"y", c"sums"]);
        let mut outputs = [self.lend(&mut y, &[2, 3], FLOAT), null_mut()];
        for count in [0, 2, 4] {
            // The tensor is on this memory, so the compiler must not keep the number elsewhere.
            unsafe { iterations.as_mut_ptr().write_volatile(count) };
            self.check(self.run(session, &names, &inputs, &output_names, &mut outputs));
            println!("{count} iterations, first {:.4}", unsafe { y.as_ptr().read_volatile() });
            self.print_floats("y", outputs[0]);
            self.print_floats("sums", outputs[1]);
            self.release_value(outputs[1]);
            outputs[1] = null_mut();
        }
        let mut binding = null_mut();
        self.check(call!(self, 134(session => Handle, &mut binding => *mut Handle) -> Status));
        let bind_input = |name: &CStr, value| call!(self, 136(binding => Handle, name.as_ptr() => *const c_char,
                                                              value => Handle) -> Status);
        for (name, value) in names.iter().zip(inputs) {
            self.check(bind_input(name, value));
        }
        self.check(call!(self, 138(binding => Handle, c"sums".as_ptr() => *const c_char,
                                   self.memory => Handle) -> Status));
        self.check(call!(self, 137(binding => Handle, c"y".as_ptr() => *const c_char, outputs[0] => Handle) -> Status));
        unsafe { iterations.as_mut_ptr().write_volatile(3) };
        for _ in 0..2 {
            self.check(call!(self, 133(session => Handle, null() => *const c_void, binding => Handle) -> Status));
        }
        let (mut bound, mut count) = (null_mut::<Handle>(), 0usize);
        self.check(call!(self, 140(binding => Handle, self.allocator => *mut Allocator, &mut bound => *mut *mut Handle,
                                   &mut count => *mut usize) -> Status));
        for &value in unsafe { std::slice::from_raw_parts(bound, count) } {
            self.print_floats("bound", value);
            self.release_value(value);
        }
        unsafe { ((*self.allocator).free)(self.allocator, bound.cast()) };
        call!(self, 135(binding => Handle) -> ());
        inputs.iter().chain([&outputs[0]]).for_each(|&value| self.release_value(value));
        self.release_session(session);
    }

    fn run_texts(&self) {
        let session = self.open("texts.onnx");
        let (mut value, mut result) = (null_mut(), [null_mut()]);
        self.check(call!(self, 48(self.allocator => *mut Allocator, [3i64].as_ptr() => *const i64, 1 => usize,
                                  STRING => i32, &mut value => *mut Handle) -> Status));
        let texts = [c"a loop".as_ptr(), c"".as_ptr(), c"ü".as_ptr()];
        self.check(call!(self, 52(value => Handle, texts.as_ptr() => *const *const c_char, 3 => usize) -> Status));
        self.check(self.run(session, &[c"words"], &[value], &[c"joined"], &mut result));
        let (mut size, mut offsets) = (0usize, [0usize; 6]);
        self.check(call!(self, 53(result[0] => Handle, &mut size => *mut usize) -> Status));
        let mut all = vec![0u8; size];
        self.check(call!(self, 54(result[0] => Handle, all.as_mut_ptr() => *mut u8, size => usize,
                                  offsets.as_mut_ptr() => *mut usize, 6 => usize) -> Status));
        for (i, &begin) in offsets.iter().enumerate() {
            let end = offsets.get(i + 1).copied().unwrap_or(size);
            println!("text '{}'", String::from_utf8_lossy(&all[begin..end]));
        }
        self.release_value(value);
        self.release_value(result[0]);
        self.release_session(session);
    }

    fn run_sequences(&self) {
        let session = self.open("sequences.onnx");
        let (mut a, mut b) = ([1.0f32, 2.0], [3.0f32, 4.0, 5.0]);
        let parts = [self.lend(&mut a, &[2], FLOAT), self.lend(&mut b, &[3], FLOAT)];
        let (mut sequence, mut result, mut count) = (null_mut(), [null_mut()], 0usize);
        self.check(call!(self, 82(parts.as_ptr() => *const Handle, 2 => usize, SEQUENCE => i32,
                                  &mut sequence => *mut Handle) -> Status));
        self.check(self.run(session, &[c"s"], &[sequence], &[c"t"], &mut result));
        self.check(call!(self, 81(result[0] => Handle, &mut count => *mut usize) -> Status));
        for i in 0..count {
            let mut part = null_mut();
            self.check(call!(self, 80(result[0] => Handle, i as i32 => i32, self.allocator => *mut Allocator,
                                      &mut part => *mut Handle) -> Status));
            self.print_floats("part", part);
            self.release_value(part);
        }
        [parts[0], parts[1], sequence, result[0]].iter().for_each(|&value| self.release_value(value));
        self.release_session(session);
    }

    fn say(&self, what: &str, status: Status) {
        if status.is_null() {
            return println!("{what}: no error");
        }
        let words = if self.message(status).is_empty() { "mute" } else { "and says why" };
        println!("{what}: code {}, {words}", self.code(status));
        call!(self, 93(status => Status) -> ());
    }

    fn fail(&self) {
        let (mut options, mut session) = (null_mut(), null_mut());
        self.check(call!(self, 10(&mut options => *mut Handle) -> Status));
        self.say("no file", call!(self, 7(self.environment => Handle, c"/there/is/no.onnx".as_ptr() => *const c_char,
                                          options => Handle, &mut session => *mut Handle) -> Status));
        self.say("no model", call!(self, 8(self.environment => Handle, c"what".as_ptr().cast() => *const c_void,
                                           4 => usize, options => Handle, &mut session => *mut Handle) -> Status));
        call!(self, 100(options => Handle) -> ());
        let session = self.open("loop.onnx");
        let mut x = [1.0f32, 2.0];
        let value = self.lend(&mut x, &[2], FLOAT);
        self.say("a missing input", self.run(session, &[c"x"], &[value], &[c"y"], &mut [null_mut()]));
        self.say("a wrong input", self.run(session, &[c"nothing"], &[value], &[c"y"], &mut [null_mut()]));
        self.release_value(value);
        self.release_session(session);
    }
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder of the models");
    let table = unsafe { ((*OrtGetApiBase()).get_api)(17) };
    let mut ort = Ort { table, environment: null_mut(), memory: null_mut(), allocator: null_mut(), folder };
    let (mut environment, mut memory, mut allocator) = (null_mut(), null_mut(), null_mut());
    ort.check(call!(ort, 3(4 => i32, c"client".as_ptr() => *const c_char, &mut environment => *mut Handle) -> Status));
    ort.check(call!(ort, 69(0 => i32, 0 => i32, &mut memory => *mut Handle) -> Status));
    ort.check(call!(ort, 78(&mut allocator => *mut *mut Allocator) -> Status));
    (ort.environment, ort.memory, ort.allocator) = (environment, memory, allocator);
    ort.run_loop();
    ort.run_texts();
    ort.run_sequences();
    ort.fail();
    call!(ort, 94(memory => Handle) -> ());
    call!(ort, 92(environment => Handle) -> ());
}
