/** Folders, by the files that they hold themselves, and what they import from each other. */
import { dirname } from 'node:path';

/** One file imports another. */
export interface Import {
  from: string;
  to: string;
  /** It takes types only. */
  isType: boolean;
}

/** One folder imports another. */
export interface FolderEdge {
  from: string;
  to: string;
  imports: Import[];
}

export class FolderGraph {
  /** By importer, then by what is imported. */
  readonly #edges = new Map<string, Map<string, FolderEdge>>();
  /** Sorted. */
  readonly folders: readonly string[];

  constructor(imports: readonly Import[]) {
    for (const one of imports) {
      const [from, to] = [dirname(one.from), dirname(one.to)];
      if (from !== to) this.#edge(from, to).imports.push(one);
    }
    const names = imports.flatMap(({ from, to }) => [dirname(from), dirname(to)]);
    this.folders = [...new Set(names)].sort();
  }

  get edges(): FolderEdge[] {
    return [...this.#edges.values()].flatMap((targets) => [...targets.values()]);
  }

  importedBy(folder: string): string[] {
    return [...(this.#edges.get(folder)?.keys() ?? [])];
  }

  /** Sets of folders of which each needs each other, those that import the others first; most have one member. */
  knots(): string[][] {
    return new KnotFinder(this).knots.reverse();
  }

  /** Importers first; folders of a knot as they are best. Of those that may come next, the one nearest by name does. */
  inOrder(): string[] {
    const left = new Map(this.knots().map((knot) => [knot[0]!, knot]));
    const order: string[] = [];
    while (left.size > 0) {
      const needed = new Set([...left.values()].flatMap((knot) => this.#neededOutside(knot)));
      const ready = [...left.values()].filter((knot) => !knot.some((folder) => needed.has(folder)));
      const next = nearest(ready, order.at(-1) ?? '');
      order.push(...this.#byUse(next));
      left.delete(next[0]!);
    }
    return order;
  }

  #neededOutside(knot: readonly string[]): string[] {
    return knot.flatMap((folder) => this.importedBy(folder)).filter((folder) => !knot.includes(folder));
  }

  /** Who imports much within the knot before who is imported much. */
  #byUse(knot: readonly string[]): string[] {
    const score = (folder: string): number =>
      this.importedBy(folder).filter((other) => knot.includes(other)).length -
      knot.filter((other) => this.importedBy(other).includes(folder)).length;
    return [...knot].sort((a, b) => score(b) - score(a) || (a < b ? -1 : 1));
  }

  #edge(from: string, to: string): FolderEdge {
    const targets = this.#edges.get(from) ?? new Map<string, FolderEdge>();
    this.#edges.set(from, targets);
    const edge = targets.get(to) ?? { from, to, imports: [] };
    targets.set(to, edge);
    return edge;
  }
}

/** Parts that are imported by none of the others first: cli, agent, collector, otlp-client, common. */
const PARTS = ['cli', 'agent', 'collector', 'otlp-client', 'common'];
const partOf = (folder: string): number => PARTS.indexOf(folder.split('/')[0]!);

function nearest(ready: readonly string[][], last: string): string[] {
  const shared = ([folder = '']: readonly string[]): number => {
    const [a, b] = [folder.split('/'), last.split('/')];
    const end = a.findIndex((name, i) => name !== b[i]);
    return end < 0 ? a.length : end;
  };
  return [...ready].sort(
    (a, b) => partOf(a[0]!) - partOf(b[0]!) || shared(b) - shared(a) || (a[0]! < b[0]! ? -1 : 1),
  )[0]!;
}

/** Tarjan's strongly connected components: https://doi.org/10.1137/0201010. */
class KnotFinder {
  /** What is imported comes first. */
  readonly knots: string[][] = [];
  readonly #graph: FolderGraph;
  readonly #numbers = new Map<string, number>();
  readonly #lowest = new Map<string, number>();
  readonly #stack: string[] = [];

  constructor(graph: FolderGraph) {
    this.#graph = graph;
    for (const folder of graph.folders) if (!this.#numbers.has(folder)) this.#visit(folder);
  }

  #visit(folder: string): void {
    const number = this.#numbers.size;
    this.#numbers.set(folder, number);
    this.#lowest.set(folder, number);
    this.#stack.push(folder);
    for (const next of this.#graph.importedBy(folder)) {
      if (!this.#numbers.has(next)) this.#visit(next);
      if (this.#stack.includes(next))
        this.#lowest.set(folder, Math.min(this.#lowest.get(folder)!, this.#lowest.get(next)!));
    }
    if (this.#lowest.get(folder) === number) this.knots.push(this.#stack.splice(this.#stack.indexOf(folder)));
  }
}
