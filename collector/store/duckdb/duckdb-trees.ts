/**
 * Summed trees of the parts in the DuckDB file, one for each part that is complete, and the functions that they share: a
 * picture of a hundred parts reads a hundred arrays of numbers, and each name once.
 */

import type { DuckDBConnection } from '@duckdb/node-api';
import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import type { Frame, StackCounts, SummedFunctions } from '../store.ts';
import { FrameTable } from '../trees/frame-table.ts';
import { OTHER } from '../trees/frames.ts';
import { type FunctionEvents, type SummedTree, stacksOf, sumPart } from '../trees/summed-tree.ts';
import { numbersOf, type Scan, textsOf } from './duckdb-columns.ts';
import { appendColumns } from './duckdb-writer.ts';

/** With more no trees are made until the retention has made room. */
const MAX_FUNCTION_BYTES = 64 * 2 ** 20;

/** ID of the "(other)" function; it is in no table. */
const OTHER_ID = 0;

/** Functions by id. */
class Functions {
  readonly #table = new FrameTable();
  /** By index in the table. */
  readonly #ids: number[] = [];
  #frames: Frame[] = [OTHER];
  #isShared = false;

  get bytes(): number {
    return this.#table.bytes;
  }

  /** By id; it does not change. */
  get frames(): readonly Frame[] {
    this.#isShared = true;
    return this.#frames;
  }

  /** One that is in the file. */
  add(frame: Frame, id: number): void {
    const index = this.#table.intern(frame);
    this.#frames[id] = this.#table.frames[index]!;
    this.#ids[index] = id;
  }

  /** Puts "(other)" in place of functions that no tree has any more. */
  fillGaps(): void {
    for (let id = 0; id < this.#frames.length; id++) this.#frames[id] ??= OTHER;
  }

  intern(frame: Frame): number {
    const index = this.#table.intern(frame);
    if (this.#ids[index] !== undefined) return this.#ids[index];
    if (this.#isShared) this.#frames = this.#frames.slice();
    this.#isShared = false;
    this.#ids[index] = this.#frames.push(this.#table.frames[index]!) - 1;
    return this.#ids[index];
  }
}

/** A tree that is not written yet, with functions of its own. */
export interface MadeTree {
  tree: SummedTree;
  byFunction: FunctionEvents;
  functions: readonly Frame[];
  /** Nodes of all the part's stacks. */
  nodes: number;
}

export function makeTree(part: StackCounts): MadeTree {
  const table = new FrameTable();
  const ids = new Int32Array(part.frames.length).fill(-1);
  const sums = sumPart(part, (frame) => {
    if (ids[frame] === -1) ids[frame] = table.intern(part.frames[frame]!);
    return ids[frame]!;
  });
  return { ...sums, functions: table.frames, nodes: part.parents.length };
}

/** Entry of a part that has a tree. */
interface TreeInfo {
  /** Nodes of all the part's stacks. */
  nodes: number;
  /** Earlier versions made trees only. */
  hasFunctions: boolean;
}

export class DuckDbTrees {
  readonly #infos: Map<number, TreeInfo>;
  #functions: Promise<Functions> | undefined;
  #dropped = 0;

  private constructor(infos: Map<number, TreeInfo>) {
    this.#infos = infos;
  }

  static async open(connection: DuckDBConnection): Promise<DuckDbTrees> {
    const reader = await connection.runAndReadAll('SELECT part, nodes, has_functions FROM trees');
    const infos = reader.getRows().map(([part, nodes, hasFunctions]): [number, TreeInfo] => {
      return [Number(part), { nodes: Number(nodes), hasFunctions: hasFunctions === true }];
    });
    return new DuckDbTrees(new Map(infos));
  }

  find(part: number): TreeInfo | undefined {
    return this.#infos.get(part);
  }

  /** Reads the functions of a part that has them. */
  async readFunctions(part: number, scan: Scan): Promise<SummedFunctions> {
    const { frames } = await this.#load(scan);
    const chunks: [Uint32Array, Uint32Array, Float64Array, Float64Array][] = [];
    await scan(`SELECT process, func, self, total FROM events_${part}`, (chunk) => {
      chunks.push([0, 1, 2, 3].map((column) => numbersOf(chunk, column).slice()) as (typeof chunks)[0]);
    });
    const length = chunks.reduce((sum, [processes]) => sum + processes.length, 0);
    const [processes, functions] = [new Uint32Array(length), new Uint32Array(length)];
    const sums = { self: new Float64Array(length), total: new Float64Array(length) };
    let at = 0;
    for (const chunk of chunks) {
      for (const [i, column] of [processes, functions, sums.self, sums.total].entries())
        column.set(chunk[i]!, at);
      at += chunk[0].length;
    }
    return { frames, processes, functions, sums };
  }

  /** Boxes of at least so many events. */
  async read(part: number, minimum: number, scan: Scan): Promise<StackCounts> {
    const chunks: [Uint32Array, Uint32Array, Uint32Array, Float64Array, Float64Array][] = [];
    const sql = `SELECT id, parent, func, total, self FROM tree_${part} WHERE parent = 0 OR total >= ${minimum}`;
    await scan(sql, (chunk) => {
      chunks.push([0, 1, 2, 3, 4].map((column) => numbersOf(chunk, column).slice()) as (typeof chunks)[0]);
    });
    const length = chunks.reduce((sum, [ids]) => sum + ids.length, 0);
    const tree: SummedTree = {
      parents: new Uint32Array(length),
      functions: new Uint32Array(length),
      totals: new Float64Array(length),
      selfCounts: new Float64Array(length),
    };
    for (const [ids, parents, functions, totals, selfCounts] of chunks) {
      for (let row = 0; row < ids.length; row++) {
        const id = ids[row]!;
        tree.parents[id] = parents[row]!;
        tree.functions[id] = functions[row]!;
        tree.totals[id] = totals[row]!;
        tree.selfCounts[id] = selfCounts[row]!;
      }
    }
    return stacksOf(tree, (await this.#load(scan)).frames, OTHER_ID);
  }

  /** In one transaction; false where there are too many functions. */
  async write(
    connection: DuckDBConnection,
    scan: Scan,
    part: number,
    { tree, byFunction, functions, nodes }: MadeTree,
  ): Promise<boolean> {
    const shared = await this.#load(scan);
    if (shared.bytes > MAX_FUNCTION_BYTES) return false;
    const first = shared.frames.length;
    const ids = new Map<number, number>();
    const idOf = (local: number): number => {
      const id = ids.get(local) ?? shared.intern(functions[local]!);
      ids.set(local, id);
      return id;
    };
    // the root has no function
    const funcs = tree.functions.map((local, node) => (node === 0 ? OTHER_ID : idOf(local)));
    const { self, total } = byFunction.sums;
    const events = [byFunction.processes.map(idOf), byFunction.functions.map(idOf), self, total];
    try {
      await connection.run(`BEGIN; CREATE TABLE tree_${part}(id UINTEGER, parent UINTEGER, func UINTEGER,
        total DOUBLE, self DOUBLE);
        CREATE TABLE events_${part}(process UINTEGER, func UINTEGER, self DOUBLE, total DOUBLE)`);
      await appendFunctions(connection, shared.frames, first);
      await appendColumns(connection, `tree_${part}`, [
        Uint32Array.from(funcs.keys()),
        tree.parents,
        funcs,
        tree.totals,
        tree.selfCounts,
      ]);
      await appendColumns(connection, `events_${part}`, events);
      await connection.run(`INSERT INTO trees VALUES (${part}, ${nodes}, true); COMMIT`);
      this.#infos.set(part, { nodes, hasFunctions: true });
      return true;
    } catch (error) {
      this.#functions = undefined;
      await connection.run('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  /** SQL that drops a part's tree, to be run with the SQL that drops the part. */
  dropSql(part: number): string {
    return `DROP TABLE IF EXISTS tree_${part}; DROP TABLE IF EXISTS events_${part}; DELETE FROM trees WHERE part = ${part};`;
  }

  noteDropped(part: number): void {
    if (this.#infos.delete(part)) this.#dropped++;
  }

  /** Forgets functions that no tree has, once as many trees were dropped as there are: all of them are read for it. */
  async tidy(connection: DuckDBConnection): Promise<void> {
    if (this.#dropped === 0 || this.#dropped < this.#infos.size) return;
    this.#dropped = 0;
    const used = [...this.#infos].flatMap(([part, { hasFunctions }]) => [
      `SELECT func FROM tree_${part}`,
      ...(hasFunctions ? [`SELECT func FROM events_${part}`] : []),
    ]);
    const where = used.length === 0 ? '' : `WHERE id NOT IN (${used.join(' UNION ')})`;
    await connection.run(`DELETE FROM functions ${where}`);
    this.#functions = undefined;
  }

  #load(scan: Scan): Promise<Functions> {
    this.#functions ??= loadFunctions(scan).catch((error) => {
      this.#functions = undefined;
      throw error;
    });
    return this.#functions;
  }
}

async function loadFunctions(scan: Scan): Promise<Functions> {
  const functions = new Functions();
  await scan('SELECT id, name, file, mapping, kind, "binary" FROM functions', (chunk) => {
    const ids = numbersOf(chunk, 0);
    const [name, file, mapping, kind, binary] = [1, 2, 3, 4, 5].map((column) => textsOf(chunk, column));
    for (let row = 0; row < chunk.rowCount; row++) {
      const frame: Frame = {
        name: name!(row),
        file: file!(row),
        mapping: mapping!(row),
        kind: kind!(row) as FrameKind,
        binary: binary!(row),
      };
      functions.add(frame, Number(ids[row]));
    }
  });
  functions.fillGaps();
  return functions;
}

async function appendFunctions(
  connection: DuckDBConnection,
  frames: readonly Frame[],
  first: number,
): Promise<void> {
  const added = frames.slice(first);
  await appendColumns(connection, 'functions', [
    Uint32Array.from(added, (_, i) => first + i),
    added.map(({ name }) => name),
    added.map(({ file }) => file),
    added.map(({ mapping }) => mapping),
    added.map(({ kind }) => kind),
    added.map(({ binary = '' }) => binary),
  ]);
}
