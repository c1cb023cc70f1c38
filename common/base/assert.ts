/** Ends a switch over a union: a new member that is not handled fails to compile here. */
export function assertUnreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`);
}
