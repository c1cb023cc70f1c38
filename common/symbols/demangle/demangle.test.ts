import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { demangle } from './demangle.ts';

// Expected texts are c++filt's (binutils 2.40, `c++filt -i`) and rustfilt's (0.2.2).
test.each([
  ['_Z3foov', 'foo()', 'foo'],
  [
    '_ZN4llvm10DILocation19decodeDiscriminatorEjRjS1_S1_',
    'llvm::DILocation::decodeDiscriminator(unsigned int, unsigned int&, unsigned int&, unsigned int&)',
    'llvm::DILocation::decodeDiscriminator',
  ],
  ['_ZNSaIcED2Ev', 'std::allocator<char>::~allocator()', 'std::allocator::~allocator'],
  [
    '_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc',
    'std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char const*)',
    'std::operator<<',
  ],
  [
    '_ZN4llvm12hash_combineIJNS_14MachineOperand18MachineOperandTypeEjPKNS_10ConstantFPEEEENS_9hash_codeEDpRKT_',
    'llvm::hash_code llvm::hash_combine<llvm::MachineOperand::MachineOperandType, unsigned int, llvm::ConstantFP const*>(llvm::MachineOperand::MachineOperandType const&, unsigned int const&, llvm::ConstantFP const* const&)',
    'llvm::hash_combine',
  ],
  [
    '_ZZ4mainENKUliE_clEi',
    'main::{lambda(int)#1}::operator()(int) const',
    'main::{lambda(int)#1}::operator()',
  ],
  ['_Z5applyPFivE', 'apply(int (*)())', 'apply'],
  ['_Z3foov.cold', 'foo() [clone .cold]', 'foo [clone .cold]'],
  ['_ZThn16_N1A1fEv', 'non-virtual thunk to A::f()', 'non-virtual thunk to A::f'],
])('C++: %s', (mangled, full, short) => {
  expect(demangle(mangled)).toBe(full);
  expect(demangle(mangled, 'short')).toBe(short);
});

// As gcc and clang mangle them: a parameter of the lambda's template is named again as one of the function's.
test.each([
  ['_ZZ2g1iENKUlT_E_clIiEEDaS_', 'auto g1(int)::{lambda(auto:1)#1}::operator()<int>(int) const'],
  ['_ZZ2g2iENKUlOT_E_clIiEEDaS0_', 'auto g2(int)::{lambda(auto:1&&)#1}::operator()<int>(int&&) const'],
  ['_Z4callIZ2g1iEUlT_E_EiS0_', 'int call<g1(int)::{lambda(auto:1)#1}>(g1(int)::{lambda(auto:1)#1})'],
  [
    '_ZZ2g1iENKUlR1AIT_EE_clIiEEDaS2_',
    'auto g1(int)::{lambda(A<auto:1>&)#1}::operator()<int>(A<int>&) const',
  ],
  [
    '_ZZ2g3iENKUlT_DpT0_E0_clIiJEEEDaS_S1_',
    'auto g3(int)::{lambda(auto:1, (auto:2)...)#2}::operator()<int>(int) const',
  ],
  [
    '_ZZN1Q1fIdEEiT_ENKUlRKS1_dE0_clIiEEDaS3_d',
    'auto Q::f<double>(double)::{lambda(auto:1 const&, double)#2}::operator()<int>(int const&, double) const',
  ],
  [
    '_Z5call2IZN1Q1fIdEEiT_EUlS2_E_ZNS1_IdEEiS2_EUlRKS2_dE0_EiS2_T0_',
    'int call2<Q::f<double>(double)::{lambda(auto:1)#1}, Q::f<double>(double)::{lambda(auto:1 const&, double)#2}>(Q::f<double>(double)::{lambda(auto:1)#1}, Q::f<double>(double)::{lambda(auto:1 const&, double)#2})',
  ],
  [
    '_ZNK12l_tpl_nt_aryMUlTniRAT__iE_clILi2EEEDaS1_',
    'auto l_tpl_nt_ary::{lambda<int $N0>(int (&) [$N0])#1}::operator()<2>(int (&) [2]) const',
  ],
  [
    '_ZNK10l_tpl_autoMUlTyT_T0_E_clIiiEEDaS0_S1_',
    'auto l_tpl_auto::{lambda<typename $T0>($T0, auto:2)#1}::operator()<int, int>(int, int) const',
  ],
  [
    '_ZNK6l_var3MUlTtTpTniETpTniRT_IJXspT0_EEEE_clI1XJLi1ELi2ELi3EEEEDaS2_',
    'auto l_var3::{lambda<template<int...> class $TT0, int... $N1>($TT0<($N1)...>&)#1}::operator()<X, 1, 2, 3>(X<1, 2, 3>&) const',
  ],
])('a lambda for any type: %s', (mangled, expected) => {
  expect(demangle(mangled)).toBe(expected);
});

test.each([
  ['_Z4fsumIJiiEEDTfrplfp_EDpT_', 'decltype (({parm#1}+...)) fsum<int, int>(int, int)'],
  ['_Z5fsum3IJiiEEDTfLplLi1Efp_EDpT_', 'decltype (((1)+...+{parm#1})) fsum3<int, int>(int, int)'],
  [
    '_Z5foldrIJilEEN3eifIXfraa2okIT_EEvE4typeEDpS1_',
    'eif<((ok<int, long>)&&...), void>::type foldr<int, long>(int, long)',
  ],
  ['_Z1f1AIXtl1Xdi1adi1bdXLi3ELi4ELi1EEEE', 'f(A<X{.a.b[3 ... 4]=(1)}>)'],
  ['_Z1fIiEvDTu11__alignof__T_EE', 'void f<int>(decltype (__alignof__(int)))'],
  ['_Z1fIiEDTplfp_Li1EET_', 'decltype ({parm#1}+(1)) f<int>(int)'],
  ['_Z1gIXadL_ZN1A1fIiEEvT_EEEvv', 'void g<&(void A::f<int>(int))>()'],
  ['_Z1gIXadL_ZN1A1fEiEEEvv', 'void g<&A::f>()'],
  [
    '_ZN1G6branchIJ1N1OEEEvPNS_5LabelIXsZT_EEES5_DpT_',
    'void G::branch<N, O>(G::Label<2>*, G::Label<2>*, N, O)',
  ],
  ['_Z6outer2IsEPFilES1_', 'int (*outer2<short>(int (*)(long)))(long)'],
])('an expression: %s', (mangled, expected) => {
  expect(demangle(mangled)).toBe(expected);
});

test.each([
  // in a class template, too, its parameters are the operator's own
  ['_ZN1AIfEcvT_IiEEv', 'A<float>::operator int<int>()'],
  ['_ZZN1XIfEcv1ZIT_EIiEEvE1y', 'X<float>::operator Z<int><int>()::y'],
  ['_ZNK1AIfEcvdEv', 'A<float>::operator double() const'],
  ['_ZNK1C1fIiEEPFivEv', 'int (*C::f<int>() const)()'],
  ['_ZN1DCI11BIJiEEEi', 'D::B(int)'],
  ['_ZZL3foo_2vE4var1_10', 'foo()::var1'],
  ['_Z1fIfLi4EEvDv_T0__T_', 'void f<float, 4>(float __vector(4))'],
])('an operator, or what C++ has few of: %s', (mangled, expected) => {
  expect(demangle(mangled)).toBe(expected);
});

test('a copy of a function for a processor says which', () => {
  expect(demangle('_Z6clonesi.avx2')).toBe('clones(int) [clone .avx2]');
  expect(demangle('_Z3fooi.arch_x86_64_v3.1')).toBe('foo(int) [clone .arch_x86_64_v3.1]');
  expect(demangle('_Z3fooi.part.9.165493.constprop.775.31805')).toBe(
    'foo(int) [clone .part.9.165493] [clone .constprop.775.31805]',
  );
});

test.each([
  ['_RNvC6_123foo3bar', '123foo::bar'],
  [
    '_RINvMNtCs2fqUAidLEe7_15rustc_serialize6opaqueNtB3_11FileEncoder19panic_invalid_writeKj10_ECs5FxD4tM6viY_14rustc_metadata',
    '<rustc_serialize::opaque::FileEncoder>::panic_invalid_write::<16>',
  ],
  [
    '_RNvXs4_NtCs9Ha9odS5Q7o_14rustc_borrowck8dataflowNtB5_7BorrowsNtNtCsbZUxntBS8ip_18rustc_mir_dataflow9framework8Analysis12bottom_value',
    '<rustc_borrowck::dataflow::Borrows as rustc_mir_dataflow::framework::Analysis>::bottom_value',
  ],
  [
    '_ZN71_$LT$object..read..archive..ArchiveKind$u20$as$u20$core..fmt..Debug$GT$3fmt17h94f19c27c349f2a0E',
    '<object::read::archive::ArchiveKind as core::fmt::Debug>::fmt',
  ],
  [
    '_ZN4core4iter6traits8iterator8Iterator8for_each4call28_$u7b$$u7b$closure$u7d$$u7d$17h6d9875181805e679E',
    'core::iter::traits::iterator::Iterator::for_each::call::{{closure}}',
  ],
  [
    '_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y',
    'utf8_idents::საჭმელად_გემრიელი_სადილი',
  ],
])('Rust: %s', (mangled, expected) => {
  expect(demangle(mangled)).toBe(expected);
});

describe('names that stay as they are', () => {
  test.each([
    'main',
    '',
    '_Z',
    '_start',
    'camlStdlib__List__map_1234',
    'Java_java_lang_System_nanoTime',
    'scala.collection.immutable.List$.apply',
    'runtime.mallocgc',
    '_Z3fo',
    '_RNvC',
    '_ZN1A1fEv_and_more',
  ])('%s', (name) => expect(demangle(name)).toBe(name));
});

test('a stub of the PLT says whose it is', () => {
  expect(demangle('_Z3foov@plt')).toBe('foo()@plt');
  expect(demangle('read@plt')).toBe('read@plt');
});

test('names that would never end, or take all memory, stay as they are', () => {
  const doubled = Array.from(
    { length: 200 },
    (_, i) => `S${i === 0 ? '' : (i - 1).toString(36).toUpperCase()}_`,
  );
  const bomb = `_Z1fI${doubled.map((s) => `1aI${s}${s}E`).join('')}Evv`;
  const twice = (depth: number): string => (depth === 0 ? '1x' : `1aI${twice(depth - 1)}S_E`);
  const hostile = [
    bomb,
    `_Z1f${'P'.repeat(5000)}i`,
    `_Z1f${'P'.repeat(9000)}i`,
    `_Z1fI${twice(100)}Evv`,
    '_ZN1AcvPT_IS2_EEv',
    '_ZN1AcvRT_IRS2_EEv',
    '_RNvB_3foo',
    `_R${'I'.repeat(5000)}C1aE`,
    '_RMB0_B0_',
  ];
  for (const name of hostile) expect(demangle(name).length).toBeLessThan(40_000);
  expect(demangle(`_Z1f${'P'.repeat(5000)}i`)).toMatch(/^_Z1f/);
});

test('any text is survived', () => {
  const alphabet = [...'_ZNKSITEDPRCLXJABFMGUVabcdfilmnstvwz0123456789.$'];
  const body = fc.array(fc.constantFrom(...alphabet), { maxLength: 60 }).map((chars) => chars.join(''));
  fc.assert(
    fc.property(fc.constantFrom('_Z', '_ZN', '_R', '_RNv', '_RINv', '_ZN3foo'), body, (prefix, rest) => {
      expect(typeof demangle(prefix + rest)).toBe('string');
    }),
    { numRuns: 5000 },
  );
});
