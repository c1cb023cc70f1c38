import { useEffect, useRef, useState } from 'preact/hooks';
import type { TimeRange } from '../../store/store.ts';
import { type FileOutcome, sendFile } from './send-file.ts';

/** Of one drop: each is read by the collector, one after the other. */
const MAX_FILES = 20;

interface Properties {
  /** Grows by one for each wish to choose files. */
  wishes: number;
  onShow(span: TimeRange): void;
}

/** Takes files that are dropped anywhere on the page, and says what became of each. */
export function FileDrop({ wishes, onShow }: Properties) {
  const input = useRef<HTMLInputElement>(null);
  const [outcomes, setOutcomes] = useState<readonly FileOutcome[]>([]);
  const [sending, setSending] = useState('');
  const send = async (files: readonly File[]): Promise<void> => {
    for (const file of files.slice(0, MAX_FILES)) {
      setSending(file.name);
      const outcome = await sendFile(file);
      setOutcomes((known) => [outcome, ...known.filter(({ fileName }) => fileName !== outcome.fileName)]);
    }
    setSending('');
  };
  const isOver = useDrop((files) => void send(files));
  useEffect(() => {
    if (wishes > 0) input.current!.click();
  }, [wishes]);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          void send([...(currentTarget.files ?? [])]);
          currentTarget.value = '';
        }}
      />
      {isOver && (
        <div class="drop-target">
          <p>Drop profiles (pprof, folded, OTLP) or programs and debug files that name functions</p>
        </div>
      )}
      <section class="outcomes" role="status" aria-label="Files">
        {sending !== '' && <p class="outcome">{sending}: being read…</p>}
        {outcomes.map((outcome) => (
          <Outcome
            key={outcome.fileName}
            {...{ outcome, onShow }}
            onClose={() => setOutcomes(outcomes.filter((other) => other !== outcome))}
          />
        ))}
      </section>
    </>
  );
}

interface OutcomeProperties {
  outcome: FileOutcome;
  onShow(span: TimeRange): void;
  onClose(): void;
}

function Outcome({ outcome, onShow, onClose }: OutcomeProperties) {
  const { fileName, text, isBad, span } = outcome;
  return (
    <p class={isBad ? 'outcome bad' : 'outcome'}>
      <span>
        <strong>{fileName}</strong>: {text}
      </span>
      {span !== undefined && (
        <button type="button" class="button" onClick={() => onShow(span)}>
          Show
        </button>
      )}
      <button
        type="button"
        class="button icon"
        title={`Forget the message about ${fileName}`}
        onClick={onClose}
      >
        <span aria-hidden="true">×</span>
        <span class="visually-hidden">Close</span>
      </button>
    </p>
  );
}

/** Whether files are held over the page. */
function useDrop(onFiles: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const holdsFiles = ({ dataTransfer }: DragEvent): boolean =>
      dataTransfer?.types.includes('Files') === true;
    const onOver = (event: DragEvent): void => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    // Entering an element leaves the one around it: only what leaves the page has no next one.
    const onLeave = ({ relatedTarget }: DragEvent): void => {
      if (relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent): void => {
      setOver(false);
      if (!holdsFiles(event)) return;
      event.preventDefault();
      onFiles([...event.dataTransfer!.files]);
    };
    addEventListener('dragover', onOver);
    addEventListener('dragleave', onLeave);
    addEventListener('drop', onDrop);
    return () => {
      removeEventListener('dragover', onOver);
      removeEventListener('dragleave', onLeave);
      removeEventListener('drop', onDrop);
    };
  }, []);
  return isOver;
}
