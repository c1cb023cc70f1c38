import type { Colour } from '../state/url-state.ts';

interface Properties {
  colour: Colour;
  options: readonly Colour[];
  onColour(colour: Colour): void;
}

/** What the colours of boxes say. */
export function ColourChoice({ colour, options, onColour }: Properties) {
  return (
    <label class="grouping">
      colours by{' '}
      <select
        aria-label="Colours by"
        value={colour}
        onChange={(event) => onColour(event.currentTarget.value as Colour)}
      >
        {options.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
