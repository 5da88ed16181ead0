// Takes a folder or an archive, dropped or chosen, and says what of it will be sent.
import { useRef, useState } from 'preact/hooks';
import { ChoiceProblem, chosenOf, droppedOf, type Chosen } from '../source/files';
import type { SourceFile } from '../source/tar';

interface DropProps {
  chosen: Chosen | null;
  choose(chosen: Chosen | null): void;
  /** Takes the text of a file of secrets as variables; absent where they are set elsewhere. */
  useSecrets?(text: string): void;
}

export function DropSource({ chosen, choose, useSecrets }: DropProps) {
  const [problem, setProblem] = useState('');
  const [isOver, setOver] = useState(false);
  const [isReading, setReading] = useState(false);
  const take = async (found: Promise<Chosen>): Promise<void> => {
    setReading(true);
    setProblem('');
    try {
      choose(await found);
    } catch (error) {
      choose(null);
      setProblem(error instanceof ChoiceProblem ? error.message : 'The files could not be read. Choose them again.');
    }
    setReading(false);
  };
  return (
    <div
      class={isOver ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer) void take(droppedOf(event.dataTransfer));
      }}
    >
      <p class="drop-title">Drop a folder or an archive here</p>
      <Inputs take={(files) => void take(chosenOf(files))} />
      <div aria-live="polite">
        {isReading && <p class="faint">Reading the files …</p>}
        {problem && <p class="problem">{problem}</p>}
        {!isReading && chosen && <Contents chosen={chosen} useSecrets={useSecrets} />}
      </div>
    </div>
  );
}

function Inputs({ take }: { take(files: File[]): void }) {
  const [folder, archive] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)];
  const taken = (input: HTMLInputElement): void => {
    if (input.files?.length) take([...input.files]);
    // The same choice again is a choice.
    input.value = '';
  };
  return (
    <p class="drop-buttons">
      <button type="button" class="quiet small" onClick={() => folder.current?.click()}>
        Choose a folder
      </button>
      <button type="button" class="quiet small" onClick={() => archive.current?.click()}>
        Choose an archive
      </button>
      <input
        ref={(element) => {
          folder.current = element;
          element?.setAttribute('webkitdirectory', '');
        }}
        type="file"
        hidden
        aria-label="Folder"
        onChange={(event) => taken(event.currentTarget)}
      />
      <input
        ref={archive}
        type="file"
        hidden
        accept=".zip,.tgz,.gz"
        aria-label="Archive"
        onChange={(event) => taken(event.currentTarget)}
      />
    </p>
  );
}

function Contents({ chosen, useSecrets }: { chosen: Chosen; useSecrets: DropProps['useSecrets'] }) {
  if (chosen.kind === 'archive')
    return (
      <p>
        <strong>{chosen.name}</strong> is sent as it is: also what is secret in it.
      </p>
    );
  const { name, files, secrets, leftOut } = chosen;
  return (
    <>
      <p>
        <strong>{name}</strong>: {filesText(files.length)}. {leftOut.count > 0 && leftOutText(leftOut)}
      </p>
      {secrets.map((secret) => (
        <p key={secret.name} class="drop-secret">
          <code>{secret.name}</code> is not sent: it has secrets.{' '}
          {useSecrets ? <AddSecrets secret={secret} add={useSecrets} /> : 'Set its variables on the page Environment.'}
        </p>
      ))}
    </>
  );
}

/** Takes the variables over, and says so: their rows are further down. */
function AddSecrets({ secret: { name, file }, add }: { secret: SourceFile; add(text: string): void }) {
  const [isAdded, setAdded] = useState(false);
  const take = async (): Promise<void> => {
    add(await file.text());
    setAdded(true);
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => void take()}>
        Add its variables<span class="off-screen"> of {name}</span>
      </button>
      {isAdded && <span class="faint"> Added below.</span>}
    </>
  );
}

/** Such as `3 files left out, by .gitignore and .dockerignore, or because the build makes them anew.` */
function leftOutText({ count, by }: { count: number; by: readonly string[] }): string {
  const files = by.length ? `, by ${new Intl.ListFormat('en-GB').format(by)}, or` : '';
  return `${filesText(count)} left out${files} because the build makes them anew.`;
}

const filesText = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'file' : 'files'}`;
