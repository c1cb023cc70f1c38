/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the PHP unwinder and agent/interpreters/php share. */
#ifndef EF_PHP_RECORDS_H
#define EF_PHP_RECORDS_H

#include "../records.h"

/* EF_FRAME_PHP: the operand is the address of the zend_function, the next word line << 32 | cookie. The line is 0 where it
 * is not known, as of functions that are written in C. */

/* Value of the map `php_files`, by file key. Addresses are offsets in the file, and where a variable is meant ELF addresses
 * less the difference between address and file offset of execute_ex. */
struct ef_php {
	__u64 loop_start; /* execute_ex */
	__u64 loop_length;
	__s64 current; /* variable: EG(current_execute_data); of a build with threads its offset in executor_globals */
	/* of a build with threads, variables: the number of TSRM's pthread key, executor_globals_offset */
	__s64 thread_key;
	__s64 globals_offset;
	/* behind the jump of execute_ex that leads to the first instruction, in whose frame JIT code runs, too; 0: a build
	 * that has none */
	__u64 resume;
	__u16 function_file;    /* offset of op_array.filename, behind which the first and the last line stand */
	__u8 has_line_register; /* execute_ex keeps the instruction in a register */
	__u8 generator_frame;   /* offsets of zend_generator.execute_data and node.parent */
	__u8 generator_inner;
	__u8 has_threads;
	__u8 is_slot; /* at globals_offset stands the address of the variable */
	__u8 is_musl;
};

#endif
