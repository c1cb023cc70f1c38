import type { FrameKind } from '../store/store.ts';
import { kindColour, SHADES } from './kinds.ts';
import { useTheme } from './use-browser.ts';

export function KindSwatch({ kind }: { kind: FrameKind }) {
  const { dark } = useTheme();
  const style = { background: kindColour(kind, (SHADES - 1) / 2, dark) };
  return <span class="swatch" style={style} aria-hidden="true" />;
}
