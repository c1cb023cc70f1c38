import { describe, expect, it } from 'vitest';
import { parseVerifierStats } from './program-figures.ts';

describe("the verifier's figures", () => {
  it('are read between its other notes', () => {
    // as Linux 6.18 wrote it
    const text = `Validating read_vma() func#3...
verification time 89947 usec
stack depth 104+0+136+0
processed 85825 insns (limit 1000000) max_states_per_insn 12 total_states 2912 peak_states 540 mark_read 0
`;
    expect(parseVerifierStats('sample', text)).toEqual({
      program: 'sample',
      verified: 85_825,
      loadMs: 89.947,
    });
  });

  it('are missed with what the kernel said instead', () => {
    expect(() => parseVerifierStats('sample', 'nothing')).toThrow(
      'the kernel gave no figures on the program sample: "nothing"',
    );
  });
});
