import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import { kindColour, SHADES } from '../../../common/flame/kinds.ts';
import { useTheme } from '../state/use-browser.ts';

export function KindSwatch({ kind }: { kind: FrameKind }) {
  const { dark } = useTheme();
  const style = { background: kindColour(kind, (SHADES - 1) / 2, dark) };
  return <span class="swatch" style={style} aria-hidden="true" />;
}
