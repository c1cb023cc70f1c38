/** Names of functions: along abstract origins and specifications, also into other units and files. */
import { RecentMap } from '../../base/recent-map.ts';
import { demangle } from '../demangle/demangle.ts';
import * as D from './constants.ts';
import { findScopes, isCpp, type Scope } from './die-scopes.ts';
import { readForm } from './forms.ts';
import { localReference } from './functions.ts';
import { readString, type Unit } from './unit.ts';
import type { UnitList } from './unit-list.ts';

const MAX_HOPS = 16;
/** Functions in functions. */
const MAX_NESTED = 8;
const TYPES = new Set([D.TAG_CLASS, D.TAG_STRUCTURE, D.TAG_UNION]);
/** Functions of a type without a name that gcc made of a lambda. */
const LAMBDAS_OWN = /^(?:operator\(\)|~?<lambda)/;
const KEPT_NAMES = 16_384;

export interface DieName {
  /** '' beside a linkage name that says it all. */
  name: string;
  linkageName: string;
  /** Of C++ without a linkage name: namespaces, classes and functions around it, '' if none. */
  scope: string;
}

/** The readable name is made of it: of C++ and Rust. */
const isWhole = (linkageName: string): boolean =>
  linkageName.startsWith('_Z') || linkageName.startsWith('_R');

interface NameAttributes {
  name: string;
  linkageName: string;
  /** Other files can call it: without a linkage name it is C's. */
  isExternal: boolean;
  /** The DIE that has more, and in which file. */
  next: number;
  isInAlternate: boolean;
}

/** The DIE that has the name. */
interface NamedDie {
  die: number;
  unit: Unit;
  units: UnitList;
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
    const found = this.#find(die, hint, this.#units, 0);
    this.#kept.set(die, found);
    return found;
  }

  #find(die: number, hint: Unit, units: UnitList, nested: number): DieName {
    const found: DieName = { name: '', linkageName: '', scope: '' };
    try {
      const named = this.#collect(die, hint, units, found);
      if (named && (isCpp(hint) || isCpp(named.unit)))
        found.scope = this.#scopeOf(named, nested, LAMBDAS_OWN.test(found.name));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      // a name that cannot be read is none; the function keeps its place in the chain
    }
    return found;
  }

  /** Undefined where a linkage name says it all, or there is none but the name. */
  #collect(start: number, hint: Unit, of: UnitList, found: DieName): NamedDie | undefined {
    let [die, units, unit] = [start, of, hint];
    let named: NamedDie | undefined;
    let isExternal = false;
    for (let hop = 0; hop < MAX_HOPS && die >= 0; hop++) {
      if (!(die >= unit.firstDie && die < unit.end)) unit = units.unitOf(die);
      const read = this.#read(die, unit, units);
      if (read.name && !found.name) named = { die, unit, units };
      found.name ||= read.name;
      found.linkageName ||= read.linkageName;
      isExternal ||= read.isExternal;
      if (found.linkageName && (found.name || isWhole(found.linkageName))) return undefined;
      die = read.next;
      if (read.isInAlternate) {
        const alternate = this.#alternate();
        if (!alternate || die < 0) break;
        units = alternate;
        unit = units.unitOf(die);
      }
    }
    return isExternal || found.linkageName ? undefined : named;
  }

  #scopeOf({ die, unit, units }: NamedDie, nested: number, isOfLambda: boolean): string {
    if (nested >= MAX_NESTED) return '';
    let parts: string[] = [];
    const scopes = findScopes(unit, units.abbrevs(unit), die);
    for (const scope of scopes) {
      const ownName = (): string => this.#read(scope.die, unit, units).name;
      const isLambda = isOfLambda && scope === scopes.at(-1);
      if (scope.tag === D.TAG_SUBPROGRAM) parts = [this.#functionName(scope, unit, units, nested)];
      else if (scope.tag === D.TAG_NAMESPACE) parts.push(ownName() || '(anonymous namespace)');
      else if (TYPES.has(scope.tag)) parts.push(ownName() || (isLambda ? '{lambda}' : '{unnamed type}'));
    }
    return parts.filter((part) => part !== '').join('::');
  }

  /** With what it stands in itself. */
  #functionName({ die }: Scope, unit: Unit, units: UnitList, nested: number): string {
    const { name, linkageName, scope } = this.#find(die, unit, units, nested + 1);
    if (linkageName) return demangle(linkageName, 'short');
    return scope ? `${scope}::${name}` : name;
  }

  #read(die: number, unit: Unit, units: UnitList): NameAttributes {
    const abbrevs = units.abbrevs(unit);
    return unit.section.parseNear(die, Math.min(unit.end, unit.section.size), (cursor) => {
      const result: NameAttributes = {
        ...{ name: '', linkageName: '', isExternal: false, next: -1, isInAlternate: false },
      };
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
          case D.AT_EXTERNAL:
            result.isExternal = value !== 0;
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
