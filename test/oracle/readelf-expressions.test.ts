/** Whether a wrong rule would be noticed that stands for an expression. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RuleKind } from '../../agent/records/records.gen.ts';
import { extractStackDeltas } from '../../agent/stack-deltas/stack-deltas.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { hasTool } from '../support/fixtures.ts';
import { compareFrames } from './compare-frames.ts';
import { ExpressionReader, evaluate, MadeUpProcess } from './readelf-expressions.ts';
import { readelfFrames } from './readelf-frames.ts';

const LIBRARY = '/usr/lib/x86_64-linux-gnu/libcrypto.so.3';

describe.skipIf(!hasTool('readelf') || !existsSync(LIBRARY))('against libcrypto', async () => {
  const { ehFrame: frames } = await readelfFrames(LIBRARY);
  const extract = () => extractStackDeltas(parseElf(bufferSource(readFileSync(LIBRARY))));

  it('everything that is an expression is compared', () => {
    const { differences, unsaid } = compareFrames(extract(), frames);
    expect(differences).toEqual([]);
    expect([...unsaid]).toEqual([]);
  });

  it.each([
    ['of the PLT', RuleKind.PLT],
    ['that is loaded', RuleKind.CFA_DEREF],
  ])('a wrong CFA %s is a difference', (_, kind) => {
    const deltas = extract();
    const rules = deltas.rules.filter((rule) => rule.kind === kind);
    expect(rules.length).toBeGreaterThan(0);
    for (const rule of rules) rule.cfaOffset2 += 1;
    expect(compareFrames(deltas, frames).differenceCount).toBeGreaterThan(0);
  });
});

describe('expressions', () => {
  const process = new MadeUpProcess(11);
  const sp = process.register(7);
  it.each([
    ['DW_OP_breg7 (rsp): -8', sp - 8n],
    ['DW_OP_breg7 (rsp): 8; DW_OP_deref; DW_OP_plus_uconst: 16', process.load(sp + 8n) + 16n],
    [
      'DW_OP_breg7 (rsp): 0; DW_OP_bregx: 46 (vg) 0; DW_OP_lit8; DW_OP_mul; DW_OP_plus',
      sp + process.register(46) * 8n,
    ],
    ['DW_OP_breg16 (rip): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit11; DW_OP_ge; DW_OP_lit3; DW_OP_shl', 8n],
    ['DW_OP_breg16 (rip): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit12; DW_OP_ge; DW_OP_lit3; DW_OP_shl', 0n],
    ['DW_OP_const2u: 688; DW_OP_consts: -3; DW_OP_plus', 685n],
    ['DW_OP_call_frame_cfa', undefined],
    ['DW_OP_plus', undefined],
  ])('%s', (text, value) =>
    expect(evaluate(text, process)).toBe(value === undefined ? value : BigInt.asUintN(64, value)),
  );

  it('hold where the instructions say', () => {
    const reader = new ExpressionReader();
    for (const line of `00000000 0000000000000014 00000000 CIE
  DW_CFA_def_cfa: r31 (sp) ofs 0
00000018 0000000000000040 0000001c FDE cie=00000000 pc=0000000000001000..0000000000001100
  DW_CFA_advance_loc: 4 to 0000000000001004
  DW_CFA_def_cfa_expression (DW_OP_breg31 (sp): 16)
  DW_CFA_expression: r29 (x29) (DW_OP_breg31 (sp): 0)
  DW_CFA_remember_state
  DW_CFA_advance_loc1: 12 to 0000000000001010
  DW_CFA_def_cfa: r31 (sp) ofs 0
  DW_CFA_restore: r29 (x29)
  DW_CFA_advance_loc: 4 to 0000000000001014
  DW_CFA_restore_state
  DW_CFA_offset: r29 (x29) at cfa-16`.split('\n'))
      reader.line(line);
    const texts = [0x1000, 0x1004, 0x100f, 0x1010, 0x1014].map((address) => {
      const { cfa = '', registers } = reader.at(0, address);
      return [cfa.slice(6), registers.get(29)?.slice(6) ?? ''];
    });
    const saved = ['breg31 (sp): 16', 'breg31 (sp): 0'];
    expect(texts).toEqual([['', ''], saved, saved, ['', ''], [saved[0], '']]);
  });
});
