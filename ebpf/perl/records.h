/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the Perl unwinder and agent/interpreters/perl share. */
#ifndef EF_PERL_RECORDS_H
#define EF_PERL_RECORDS_H

#include "../records.h"

/*
 * EF_FRAME_PERL. The operand: an eighth of the address of what the function is called by, in 45 bits; above that enum ef_perl_kind
 * in 3 bits, and 5 bits of cookie. The next word: from bit 19 on an eighth of the address of the statement (COP), 0 where it is
 * not known; below, its line. A kind without a name has 1 as address where the statement is that which is being compiled.
 */
#define EF_PERL_ADDRESS_BITS 45
#define EF_PERL_LINE_BITS 19

enum ef_perl_kind {
	EF_PERL_MAIN = 0,     /* code of the program outside of functions */
	EF_PERL_GV = 1,       /* the symbol (GV) that the function belongs to */
	EF_PERL_LEXICAL = 2,  /* the name (HEK) of a function that is not a member of a package */
	EF_PERL_CV = 3,       /* the function itself, which has a name of its own */
	EF_PERL_EVAL = 4,     /* a text that is evaluated */
	EF_PERL_REQUIRED = 5, /* a file that is required, or done */
};

/* Where the interpreter is. */
enum ef_perl_access {
	EF_PERL_KEY = 0,     /* what a pthread key leads to, whose number stands at `at` */
	EF_PERL_POINTER = 1, /* what stands at `at` */
	EF_PERL_GLOBALS = 2, /* its members are variables */
};

/* Functions of which a native frame says something. */
enum ef_perl_function {
	EF_PERL_RUNOPS = 0,
	EF_PERL_RUNOPS_DEBUG = 1,
	EF_PERL_CALL = 2,
	EF_PERL_OVERLOAD = 3,
	EF_PERL_REGEXEC = 4,
	EF_PERL_RUN = 5,
	EF_PERL_PARSE = 6,
	EF_PERL_FUNCTIONS = 7,
};

struct ef_perl_range {
	__u64 start; /* offset in the file */
	__u64 length;
};

/* Value of the map `perl_files`, by file key. Addresses are ELF addresses less the difference between address and file offset of
 * the code; without an interpreter of its own (EF_PERL_GLOBALS) the members are such, too. */
struct ef_perl {
	struct ef_perl_range functions[EF_PERL_FUNCTIONS];
	__s64 at;
	__s64 operation; /* members of the interpreter: PL_op, PL_curcop, PL_curstackinfo */
	__s64 statement;
	__s64 stack_info;
	__s64 compiling; /* the statement that is being compiled stands from there on, in so many bytes */
	__u32 compiling_bytes;
	__u8 access; /* enum ef_perl_access */
	__u8 is_musl;
	__u8 context_bytes; /* of PERL_CONTEXT */
	__u8 context_cv;    /* offset in it: the function */
	__u8 context_name;  /* of an eval: the file that is required */
	__u8 stack_type;    /* offset in PERL_SI */
	__u8 is_slot;       /* `at` is where the loader has left the address of what is meant */
	__u8 reserved;
};

#endif
