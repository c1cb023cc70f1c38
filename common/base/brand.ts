/** Branded types for what is "just a number" or "just a string"; the constructors are the only casts. */
export type Brand<T, Name extends string> = T & { readonly __brand: Name };

/** Process ID in the root PID namespace (the kernel's tgid). */
export type Pid = Brand<number, 'Pid'>;
/** Thread ID in the root PID namespace (the kernel's pid). */
export type Tid = Brand<number, 'Tid'>;
/** 128-bit file ID as 32 hex digits: see docs/glossary.md. */
export type FileId = Brand<string, 'FileId'>;
/** 64-bit key that BPF forms from device, inode, generation and ctime; 16 hex digits. */
export type FileKey = Brand<string, 'FileKey'>;
/** Position of a trace in the agent's trace store: see agent/traces/trace-store.ts. */
export type TraceId = Brand<number, 'TraceId'>;

export const toPid = (value: number): Pid => value as Pid;
export const toTid = (value: number): Tid => value as Tid;
export const toFileId = (hex: string): FileId => hex as FileId;
export const toFileKey = (hex: string): FileKey => hex as FileKey;
export const toTraceId = (value: number): TraceId => value as TraceId;
