import type { ViewProperties } from '../state/view-properties.ts';
import { CallersView } from './callers-view.tsx';
import { DiffView } from './diff-view.tsx';
import { GraphView } from './graph-view.tsx';
import { SourceView } from './source-view.tsx';
import { ThreadsView } from './threads-view.tsx';
import { TimeView } from './time-view.tsx';
import { TopView } from './top-view.tsx';

/** What the chosen tab shows. */
export function MainView(properties: ViewProperties) {
  switch (properties.state.view) {
    case 'top':
      return <TopView {...properties} />;
    case 'callers':
      return <CallersView {...properties} />;
    case 'source':
      return <SourceView {...properties} />;
    case 'time':
      return <TimeView {...properties} />;
    case 'threads':
      return <ThreadsView {...properties} />;
    case 'diff':
      return <DiffView {...properties} />;
    default:
      return <GraphView {...properties} />;
  }
}
