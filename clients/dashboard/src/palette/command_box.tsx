// A combobox of commands (ARIA 1.2): the focus stays in the field, arrows move through the list, Enter does it.
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { asApiError } from '../api/use_query';
import { useAutoFocus } from '../parts/focus';
import { Icon } from '../parts/icon';
import { leaveBy } from '../parts/unsaved';
import { currentProject } from '../place';
import { address, navigate } from '../router';
import type { PaletteMode } from '../keyboard';
import { commandsOf, commandsOfThings, switchesOf } from './commands';
import { theme } from '../theme';
import { useNames } from './names';
import { ranked, type Command } from './rank';

const SHOWN_MAX = 50;
/** Served by this server, and no page of the dashboard. */
const DOCUMENTS = /^\/(v2|graphql)\b/;
const LABELS: Record<PaletteMode, string> = {
  all: 'Find anything, or say what to do',
  switch: 'Switch to a project or an application',
};

interface BoxProps {
  mode: PaletteMode;
  /** What is typed at first. */
  text?: string;
  onText?(text: string): void;
  /** Something was chosen. */
  onDone(): void;
}

export function CommandBox({ mode, text: first = '', onText, onDone }: BoxProps) {
  const [text, setText] = useState(first);
  const [active, setActive] = useState(0);
  const field = useAutoFocus();
  const id = useId();
  const { found, total, state } = useFound(mode, text);
  const { failure, choose } = useChosen(onDone);
  const index = Math.min(active, found.length - 1);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const to = stepOf(event.key, index, found.length);
    if (to !== null) setActive(to);
    else if (event.key === 'Enter' && found[index]) choose(found[index]);
    else return;
    event.preventDefault();
  };
  return (
    <div class="command-box">
      <input
        ref={field}
        type="text"
        role="combobox"
        aria-label={LABELS[mode]}
        aria-autocomplete="list"
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length ? `${id}-${index}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={LABELS[mode]}
        value={text}
        onInput={({ currentTarget: { value } }) => {
          setText(value);
          setActive(0);
          onText?.(value);
        }}
        onKeyDown={onKeyDown}
      />
      {failure && (
        <p class="notice bad" role="alert">
          {failure}
        </p>
      )}
      <Options id={id} found={found} index={index} point={setActive} choose={choose} />
      <p class="faint palette-state" role="status">
        {total > found.length ? `${found.length} of ${total.toLocaleString('en')} are shown. Type more. ` : ''}
        {text && !found.length ? 'No matches. ' : ''}
        {state}
      </p>
    </div>
  );
}

interface OptionsProps {
  id: string;
  found: readonly Command[];
  index: number;
  point(index: number): void;
  choose(command: Command): void;
}

function Options({ id, found, index, point, choose }: OptionsProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [index, found]);
  return (
    <ul class="options" id={`${id}-list`} role="listbox" aria-label="Found" ref={list} hidden={!found.length}>
      {found.map((command, at) => (
        <li
          key={command.id}
          id={`${id}-${at}`}
          role="option"
          aria-selected={at === index}
          onPointerMove={() => point(at)}
          onClick={() => choose(command)}
        >
          <Icon name={command.icon} />
          <span class="option-label">{command.label}</span>
          <small>{command.hint}</small>
        </li>
      ))}
    </ul>
  );
}

/** Where an arrow leads, from one end to the other; null for other keys. */
function stepOf(key: string, index: number, count: number): number | null {
  if (!count) return null;
  if (key === 'ArrowDown') return (index + 1) % count;
  if (key === 'ArrowUp') return (index - 1 + count) % count;
  if (key === 'PageDown') return Math.min(index + 8, count - 1);
  return key === 'PageUp' ? Math.max(index - 8, 0) : null;
}

function useFound(mode: PaletteMode, text: string): { found: Command[]; total: number; state: string } {
  const projectId = currentProject();
  const { path } = address.value;
  // All names are read once something is typed: opening the palette alone costs one request.
  const [wantsAll, setWantsAll] = useState(false);
  useEffect(() => {
    if (text.trim()) setWantsAll(true);
  }, [text]);
  const names = useNames(projectId, wantsAll);
  const commands = useMemo(
    () => unique(mode === 'all' ? commandsOf(names, path, projectId) : switchesOf(names, projectId)),
    [names, path, projectId, mode, theme.value],
  );
  const all = useMemo(() => {
    const ofThings = mode === 'all' ? commandsOfThings(names, path, text) : [];
    return ranked([...ofThings, ...commands], text);
  }, [commands, text]);
  const reading = names.isComplete ? '' : `${names.named.length.toLocaleString('en')} names read so far.`;
  return { found: all.slice(0, SHOWN_MAX), total: all.length, state: names.error?.message ?? reading };
}

const unique = (commands: readonly Command[]): Command[] =>
  [...new Map(commands.toReversed().map((command) => [command.id, command])).values()].reverse();

function useChosen(onDone: () => void): { failure: string; choose(command: Command): void } {
  const [failure, setFailure] = useState('');
  const isRunning = useRef(false);
  const choose = ({ href, run }: Command): void => {
    if (href) {
      onDone();
      leaveBy(() => (DOCUMENTS.test(href) ? location.assign(href) : navigate(href)));
    } else if (run && !isRunning.current) {
      isRunning.current = true;
      setFailure('');
      Promise.resolve()
        .then(run)
        .then(onDone, (error: unknown) => setFailure(asApiError(error).message))
        .finally(() => (isRunning.current = false));
    }
  };
  return { failure, choose };
}
