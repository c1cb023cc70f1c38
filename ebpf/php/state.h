/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the PHP unwinder keeps for the length of a sample. */
#ifndef EF_PHP_STATE_H
#define EF_PHP_STATE_H

#include "../kernel.h"
#include "records.h"

/* Generators that delegate to one another, a power of two; what is further in is left out */
#define PHP_MAX_DELEGATES 8

/* The PHP frames of the sampled stack that were not taken yet. */
struct ef_php_state {
	u64 key;            /* the interpreter's file; 0: none was detected */
	struct ef_php file; /* its entry, copied once a sample */
	u32 has_begun;
	u32 is_leaf;    /* of the next frame: its instruction is in a register, if that one's says so */
	u32 is_outside; /* of the fiber that the stack is of */
	u32 is_delegate;
	u64 delegate_count;
	u64 delegates[PHP_MAX_DELEGATES]; /* frames of generators that were not taken yet, the next one last */
	u64 frame;
	u64 execute[7];  /* zend_execute_data: opline, call, return value, func, This (2), prev */
	u64 function[3]; /* zend_function: type and flags, name, class */
	u64 place[2];    /* op_array: filename, first and last line */
};

#endif
