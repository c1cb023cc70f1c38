/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Every way in which BPF ends a path early, and what it counts on the way: one line each, append only (the
 * position is the id). agent/records/counters.gen.ts and docs/counters.md are generated from this table.
 */
#ifndef EF_COUNTERS_H
#define EF_COUNTERS_H

#define EF_COUNTERS(X) \
	X(samples, "Samples that were begun: timer ticks that found a task, and other events") \
	X(samples_idle, "Timer ticks on the idle task, not sampled") \
	X(samples_filtered, "Ticks on processes that the filter leaves out") \
	X(samples_sent, "Sample events written to the ring buffer") \
	X(samples_lost_ring, "Sample events lost because the ring buffer was full") \
	X(traces_sent, "Traces written to the ring buffer, once each") \
	X(traces_lost_ring, "Traces (and their sample) lost because the ring buffer was full") \
	X(traces_known, "Samples whose trace user space already had") \
	X(scratch_missing, "Internal: no per-CPU scratch memory") \
	X(kernel_stack_failed, "Kernel stacks that the kernel could not give") \
	X(kernel_stack_cut, "Kernel stacks that reached the limit of 127 frames") \
	X(user_none, "Samples of kernel threads or of tasks without memory: kernel frames only") \
	X(user_regs_failed, "User registers could not be read: kernel frames only") \
	X(user_leaf_unmapped, "Inside exec or exit the user registers point nowhere: kernel frames only") \
	X(user_complete, "User stacks that reached a root") \
	X(user_cut_depth, "User stacks deeper than --max-user-frames") \
	X(user_cut_no_table, "User stacks cut: no unwind table for the file, no usable frame pointer") \
	X(user_cut_pending, "User stacks cut: the file's table was still being made, no usable frame pointer") \
	X(user_cut_no_rule, "User stacks cut: no rule for the address, no usable frame pointer") \
	X(user_cut_anon, "User stacks cut: code that no file backs, no usable frame pointer") \
	X(user_cut_stack_read, "User stacks cut: a stack page was not resident") \
	X(user_cut_unmapped, "User stacks cut: the next program counter lies in no executable mapping") \
	X(user_cut_register, "User stacks cut: the rule needs a register known in the leaf only") \
	X(user_cut_no_progress, "User stacks cut: the stack pointer did not move up") \
	X(user_cut_compat, "User stacks of 32-bit processes, not unwound") \
	X(user_cut_vma_race, "User stacks cut: the mapping changed while it was read") \
	X(frames_frame_pointer, "Frames that were passed by the frame-pointer fallback") \
	X(vma_lookups, "Mappings looked up (misses of the per-sample cache)") \
	X(vma_retries, "Mappings read twice because they changed under way") \
	X(files_reported, "File events written to the ring buffer") \
	X(files_lost_ring, "File events lost because the ring buffer was full; sent again at the next sample") \
	X(files_map_full, "Files not reported because the map of files is full") \
	X(path_cut, "Paths with more than 32 components or 1,024 bytes, cut at the root's side") \
	X(processes_reported, "Process records written to the ring buffer") \
	X(processes_lost_ring, \
	  "Process records lost because the ring buffer was full; sent again at the next sample") \
	X(execs, "Program starts seen") \
	X(exits, "Process ends seen of processes that were sampled") \
	X(exits_lost_ring, "Exit records lost because the ring buffer was full") \
	X(targets_full, "Children not followed because the map of target processes is full") \
	X(python_no_thread, "Samples in CPython's interpreter loop of a thread without a Python thread state") \
	X(python_read_failed, "Reads of CPython's state that failed: the rest is native only") \
	X(python_not_code, "Python frames whose code is not a code object: the rest is native only") \
	X(v8_read_failed, "Reads of V8's frames and objects that failed: shown as native code, or without the place") \
	X(v8_processes, "Processes in which V8 was detected") \
	X(sampler_missing, "Internal: timer ticks that found no sampler") \
	X(v8_not_object, "JavaScript frames whose function is not an object: shown as native code") \
	X(stacks_deferred, "User stacks left to be read on return to user space: a stack page was not resident") \
	X(stacks_completed, "Deferred stacks of which every page could be read then") \
	X(stacks_incomplete, "Deferred stacks of which a page could not be read then either: cut, as counted above") \
	X(stacks_too_late, "Deferred stacks whose process had a new program or none by then: cut where they were") \
	X(stacks_not_deferred, "User stacks cut at a page that was not resident: no such memory, too many wait already, or Linux before 6.18") \
	X(runtimes_met, "Processes reported whose runtime has to be attached to, each time that it was asked for") \
	X(runtimes_lost_ring, "Such reports lost because the ring buffer was full; sent again later") \
	X(runtimes_map_full, "Processes whose runtime is not attached to because the map of them is full") \
	X(hotspot_read_failed, "Reads of HotSpot's code heaps and frames that failed") \
	X(hotspot_no_heap, "Frames in an attached Java process in memory that is not a code heap") \
	X(hotspot_no_blob, "Frames in a code heap where nothing is allocated: shown as code that no file backs") \
	X(hotspot_bad_frame, "Interpreted Java frames that contradict themselves: shown as code that no file backs") \
	X(hotspot_no_caller, "Java frames whose return address was not found: shown as code that no file backs") \
	X(samples_shed, "Samples left out by chance because the agent had used up --max-cpu") \
	X(samples_nested, "Samples left out because they interrupted another event on their CPU") \
	X(runtimes_detected, "Processes in which the sampler came to code of a runtime that has code outside of files, too") \
	X(php_read_failed, "Reads of PHP's frames and functions that failed") \
	X(php_not_function, "PHP frames whose function is none: the PHP frames from there on are left out") \
	X(dotnet_read_failed, "Reads of .NET's code heaps and tables that failed") \
	X(dotnet_no_method, ".NET frames in a code heap where no method begins: shown as code that no file backs") \
	X(dotnet_no_function, ".NET frames of which no unwind information is found: shown as native code") \
	X(dotnet_no_caller, ".NET frames whose return address was not found: shown as native code") \
	X(dotnet_unwind_unread, ".NET frames passed by their frame pointer, since their unwind information is not in memory") \
	X(ruby_read_failed, "Reads of Ruby's frames and methods that failed") \
	X(ruby_bad_frame, "Ruby frames that contradict themselves: the Ruby frames from there on are left out") \
	X(ruby_other_thread, "Samples in Ruby's interpreter of a thread that does not run Ruby now (2.7): it has native frames only") \
	X(perl_read_failed, "Reads of Perl's contexts, functions and statements that failed") \
	X(perl_bad_context, "Perl's stacks of contexts that contradict themselves: the Perl frames from there on are left out") \
	X(perl_not_function, "Perl frames whose function is none: left out") \
	X(perl_contexts_left, "Samples in more than 4,096 of Perl's contexts: its outer frames are left out") \
	X(waits_sampled, "Waits of which the stack was taken, with --off-cpu") \
	X(waits_reported, "Samples of waits: where one ended, at its wake-up, and while it lasts") \
	X(threads_ended, "Threads whose times were sent as they ended") \
	X(threads_lost_ring, "The same lost because the ring buffer was full") \
	X(threads_full, "Switches to threads that are not counted because the map of threads is full") \
	X(functions_sent, "Functions whose names were read at the sample, since they may be freed soon (PHP)") \
	X(functions_lost_ring, "Such names lost because the ring buffer was full: they are read from the process, or sent again") \
	X(events_sampled, "Events of --event of which the stack was taken") \
	X(events_value_failed, "Events of --event left out, because their value, or what they are filtered by, could not be read, or is below 0 or 2^47 and more") \
	X(luajit_read_failed, "Reads of LuaJIT's frames, functions and traces that failed") \
	X(luajit_bad_frame, "LuaJIT's frames that contradict themselves: the Lua frames from there on are left out") \
	X(switches_missed, "Switches that the kernel told nobody of: of one to a thread the time is known nevertheless, of one from it see threads_left_untold") \
	X(allocations_full, "Sampled allocations of --event malloc left out of live bytes because the map of them is full") \
	X(go_read_failed, "Reads of Go's goroutines that failed: the sample has no labels") \
	X(go_bad_goroutine, "Samples without Go's labels: what the thread runs is none of its own") \
	X(go_bad_labels, "Samples without Go's labels: they contradict themselves") \
	X(labels_read_failed, "Reads of labels that failed, at least at first: see stacks_deferred") \
	X(labels_left_out, "Labels left out: without a key, with one of more than 100 bytes, or beyond 1,024 bytes or 64 labels") \
	X(labels_cut, "Labels whose value was cut at 256 bytes") \
	X(beam_read_failed, "Reads of BEAM's memory that failed") \
	X(beam_no_stack, "Samples in code of BEAM's JIT of which the Erlang stack was not found: the callers are left out") \
	X(luajit_no_frame, "Samples in LuaJIT's interpreter whose native frame was not found there: that part of the stack has native frames only") \
	X(calls_missed, "Returns of functions of --event uretprobe whose call was not seen, or was forgotten among 32,768 others: not counted") \
	X(threads_left_untold, "Threads that left a CPU by a switch that the kernel told nobody of: from then on they wait for something unknown") \
	X(lua_read_failed, "Reads of Lua's frames and functions that failed") \
	X(lua_bad_frame, "Lua's frames that contradict themselves: the Lua frames from there on are left out") \
	X(lua_no_thread, "Samples in Lua's interpreter whose lua_State was not found: that part of the stack has native frames only") \
	X(php_no_globals, "Samples in PHP's interpreter whose thread's globals were not found: that part of the stack has native frames only") \
	X(threads_found_waiting, "Threads that waited already when --off-cpu began: counted from then on") \
	X(waits_sampled_late, "Waits of which the stack was taken while they lasted: they began before, or were left out or cut as they began") \
	X(contexts_taken, "Samples with a thread context (OTEP 4947): a trace, a span, attributes") \
	X(contexts_read_failed, "Reads of thread contexts that failed: the sample has none") \
	X(contexts_bad, "Thread contexts that contradict themselves: the sample has none")

#define EF_COUNTER_ENUM(name, text) EF_COUNTER_##name,
enum ef_counter { EF_COUNTERS(EF_COUNTER_ENUM) EF_COUNTER_MAX };

#endif
