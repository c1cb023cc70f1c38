/** Names of functions: along abstract origins and specifications, also into other units and files. */
import { RecentMap } from '../../base/recent-map.ts';
import * as D from './constants.ts';
import { readForm } from './forms.ts';
import { localReference } from './functions.ts';
import { readString, type Unit } from './unit.ts';
import type { UnitList } from './unit-list.ts';

const MAX_HOPS = 16;
const KEPT_NAMES = 16_384;

export interface DieName {
  /** '' beside a linkage name that says it all. */
  name: string;
  linkageName: string;
}

/** The readable name is made of it: of C++ and Rust. */
const isWhole = (linkageName: string): boolean =>
  linkageName.startsWith('_Z') || linkageName.startsWith('_R');

interface NameAttributes extends DieName {
  /** The DIE that has more, and in which file. */
  next: number;
  isInAlternate: boolean;
}

export class DieNames {
  readonly #units: UnitList;
  /** The shared part that dwz split off. */
  readonly #alternate: () => UnitList | undefined;
  readonly #kept = new RecentMap<number, DieName>(KEPT_NAMES);

  constructor(units: UnitList, alternate: () => UnitList | undefined) {
    this.#units = units;
    this.#alternate = alternate;
  }

  /** About; for the memory bound. */
  get byteLength(): number {
    return this.#kept.weight * 160;
  }

  /** Of the DIE at an offset in .debug_info. `hint` is the unit in which it probably stands. */
  resolve(die: number, hint: Unit): DieName {
    const kept = this.#kept.get(die);
    if (kept) return kept;
    const found: DieName = { name: '', linkageName: '' };
    try {
      this.#collect(die, hint, found);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      // a name that cannot be read is none; the function keeps its place in the chain
    }
    this.#kept.set(die, found);
    return found;
  }

  #collect(start: number, hint: Unit, found: DieName): void {
    let [die, units, unit] = [start, this.#units, hint];
    for (let hop = 0; hop < MAX_HOPS && die >= 0; hop++) {
      if (!(die >= unit.firstDie && die < unit.end)) unit = units.unitOf(die);
      const read = this.#read(die, unit, units);
      found.name ||= read.name;
      found.linkageName ||= read.linkageName;
      if (found.linkageName && (found.name || isWhole(found.linkageName))) return;
      die = read.next;
      if (read.isInAlternate) {
        const alternate = this.#alternate();
        if (!alternate || die < 0) return;
        units = alternate;
        unit = units.unitOf(die);
      }
    }
  }

  #read(die: number, unit: Unit, units: UnitList): NameAttributes {
    const abbrevs = units.abbrevs(unit);
    return unit.section.parseNear(die, Math.min(unit.end, unit.section.size), (cursor) => {
      const result: NameAttributes = { name: '', linkageName: '', next: -1, isInAlternate: false };
      const row = abbrevs.find(cursor.uleb());
      if (row < 0) throw new D.DwarfError(`no DIE at ${die}`);
      let [nameForm, name] = [0, 0];
      for (let i = abbrevs.attributeStarts[row]!; i < abbrevs.attributeStarts[row + 1]!; i++) {
        const form = abbrevs.forms[i]!;
        if (form === D.FORM_IMPLICIT_CONST) continue;
        const value = readForm(cursor, form, unit);
        switch (abbrevs.names[i]) {
          case D.AT_NAME:
            [nameForm, name] = [form, value];
            break;
          case D.AT_LINKAGE_NAME:
          case D.AT_MIPS_LINKAGE_NAME:
            result.linkageName = this.#text(unit, form, value, cursor.bytes);
            break;
          case D.AT_ABSTRACT_ORIGIN:
          case D.AT_SPECIFICATION:
            result.isInAlternate = isAlternateReference(form);
            result.next = result.isInAlternate ? value : localReference(form, value, unit);
            break;
        }
      }
      if (nameForm !== 0 && !isWhole(result.linkageName))
        result.name = this.#text(unit, nameForm, name, cursor.bytes);
      return result;
    });
  }

  #text(unit: Unit, form: number, value: number, bytes: Uint8Array): string {
    if (form === D.FORM_GNU_STRP_ALT || form === D.FORM_STRP_SUP)
      return this.#alternate()?.file.section('str').string(value) ?? '';
    return readString(unit, form, value, bytes);
  }
}

const isAlternateReference = (form: number): boolean =>
  form === D.FORM_GNU_REF_ALT || form === D.FORM_REF_SUP4 || form === D.FORM_REF_SUP8;
