/** The page of a single profile, which it holds: opens from disk, asks nobody for anything. */

import { render } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { buildModel, type FlameModel } from '../../common/flame/flame-model.ts';
import { formatShare, plural } from '../../common/flame/format.ts';
import type { FlameGraphResponse } from '../../common/flame/tree-answer.ts';
import { Breadcrumb } from './flame/breadcrumb.tsx';
import { describeView } from './flame/describe.ts';
import { FlameGraph } from './flame/flame-graph.tsx';
import { Legend } from './flame/legend.tsx';
import { parseSearch, search } from './state/search.ts';

function Standalone({ model, title }: { model: FlameModel; title: string }) {
  const [root, setRoot] = useState(0);
  const [text, setText] = useState('');
  const [jumps, setJumps] = useState(0);
  const [spoken, announce] = useState('');
  const box = useRef<HTMLInputElement>(null);
  const { found, note } = useMemo(() => findText(model, text, root), [model, text, root]);
  return (
    <div class="page">
      <header class="standalone-bar">
        <h1>{title}</h1>
        <input
          ref={box}
          type="search"
          aria-label="Search functions"
          placeholder="Search: text or /regex/"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Enter' && setJumps(jumps + 1)}
        />
        <output>{note}</output>
      </header>
      <main class="standalone-main">
        <div class="heading">
          <Breadcrumb model={model} root={root} onZoom={setRoot} />
          <p class="summary">{describeView(model, root)}</p>
        </div>
        <FlameGraph
          {...{ model, root, found, jumps, announce }}
          label="Flame graph"
          isFlipped={false}
          colour="kind"
          onZoom={setRoot}
        />
        <Legend {...{ model, root }} colour="kind" leaves={root === 0 ? model.leaves : undefined} />
      </main>
      <div class="visually-hidden" aria-live="polite">
        {spoken}
      </div>
    </div>
  );
}

function findText(model: FlameModel, text: string, root: number) {
  const matcher = parseSearch(text);
  if (matcher === undefined) return { found: undefined, note: '' };
  if ('error' in matcher) return { found: undefined, note: matcher.error };
  const found = search(model, matcher, root);
  if (found.nodes === 0) return { found, note: 'no match' };
  const share = formatShare(found.samples / (model.total[root] || 1));
  return { found, note: `${share} in ${plural(found.nodes, 'box', 'boxes')}` };
}

const data = JSON.parse(document.getElementById('profile')!.textContent!) as FlameGraphResponse;
render(<Standalone model={buildModel(data)} title={document.title} />, document.getElementById('app')!);
