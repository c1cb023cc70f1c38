/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Names of PHP's functions, read while the sampled thread stands in them. Many functions live for one call (a closure
 * given to array_map, code given to eval) or for one request (all of them without opcache): user space would come too
 * late. They go out ahead of the first trace that has them, each function once.
 */
#ifndef EF_PHP_FUNCTIONS_H
#define EF_PHP_FUNCTIONS_H

#include "../sent.h"
#include "unwind.h"

/* zend_string's characters, zend_class_entry's name */
#define PHP_STRING_DATA 24
#define PHP_CLASS_NAME 8

/* Appends a zend_string and its NUL to the record, behind texts of `most` bytes at most, one less than a power of two; false
 * where it does not fit, or can't be read. */
static __always_inline bool append_php_string(struct ef_scratch *s, u64 string, volatile u16 *bytes, u32 room,
					      u64 most)
{
	volatile u16 *used = &s->record.function.text_bytes;
	u64 at = *used;

	*bytes = 0;
	if (!string)
		return 1;
	OPAQUE(at);
	long n = USER_READ_TEXT(s->record.bytes + offsetof(struct ef_function, texts) + (at & most), room,
				string + PHP_STRING_DATA);
	if (n <= 0 || n >= room)
		return 0;
	*bytes = n;
	*used = at + n;
	return 1;
}

/* Class, name and file of w->function. */
static __always_inline bool read_php_texts(struct ef_scratch *s, const struct ef_php_state *w)
{
	struct ef_function *f = &s->record.function;
	u64 scope = w->function[2];
	u64 class = scope ? PHP_WORD(scope + PHP_CLASS_NAME) : 0;

	f->text_bytes = 0;
	return !!class == !!scope && append_php_string(s, class, &f->class_bytes, EF_FUNCTION_NAME_BYTES, 0) &&
	       append_php_string(s, w->function[1], &f->name_bytes, EF_FUNCTION_NAME_BYTES,
				 EF_FUNCTION_NAME_BYTES - 1) &&
	       append_php_string(s, w->place[0], &f->file_bytes, EF_FUNCTION_FILE_BYTES,
				 2 * EF_FUNCTION_NAME_BYTES - 1);
}

/* The frame of two words at `at`. What can't be read is left to user space. Global, so that it is verified once. */
__noinline int send_php_function(u32 at)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(PHP);
	if (!s)
		return 0;
	struct ef_php_state *w = &s->runtimes.php;
	u64 function = trace_word(s, at) & ((1ULL << 56) - 1), second = trace_word(s, at + 1);
	u64 hash = mix64(mix64(function ^ s->sample.process.start_boottime_ns) ^
			 (second << 32 | s->sample.process.tgid));
	struct ef_seen_set *set = set_of_function(hash);

	if (!set || is_seen(set, hash))
		return 0;
	w->execute[3] = function;
	if (read_php_function(w) || php_cookie(w) != (u32)second || !read_php_texts(s, w))
		return 0;
	struct ef_function *f = &s->record.function;
	f->type = EF_RECORD_FUNCTION;
	f->frame_kind = EF_FRAME_PHP;
	f->kind = (u8)w->function[0];
	f->process = s->sample.process;
	f->operand = function;
	f->cookie = second;
	f->first_line = w->place[1];
	f->last_line = w->place[1] >> 32;
	if (send_function(s))
		mark_seen(set, hash);
	return 0;
}

#endif
