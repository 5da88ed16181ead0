// A combobox of commands (ARIA 1.2): the focus stays in the field, arrows move through the list, Enter does it.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asApiError } from '../api/use_query';
import { useAutoFocus } from '../parts/focus';
import { Icon } from '../parts/icon';
import { leaveBy } from '../parts/unsaved';
import { currentProject } from '../place';
import { address, navigate } from '../router';
import type { PaletteMode } from '../keyboard';
import { commandsOf, commandsOfThings, switchesOf } from './commands';
import { theme } from '../theme';
import { useNames, type Names } from './names';
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
  /** Enter was pressed behind it. */
  isEntered?: boolean;
  onText?(text: string): void;
  /** Something was chosen. */
  onDone(): void;
}

export function CommandBox({ mode, text: first = '', isEntered: enteredFirst = false, onText, onDone }: BoxProps) {
  const [text, setText] = useState(first);
  // By its id: names that are read later stand before it.
  const [active, setActive] = useState('');
  const field = useAutoFocus();
  const id = useId();
  const { found, total, state, isReady, isComplete } = useFound(mode, text);
  const { failure, choose } = useChosen(onDone);
  const index = Math.max(
    found.findIndex((command) => command.id === active),
    0,
  );
  const best = found[index];
  const isPointed = best?.id === active;
  const enter = useEnter({ isEntered: enteredFirst, best, isReady: isReady || isPointed, isComplete, choose });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const to = stepOf(event.key, index, found.length);
    if (to !== null) setActive(found[to]?.id ?? '');
    if (to !== null || event.key === 'Enter') event.preventDefault();
    enter(event.key === 'Enter');
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
          setActive('');
          enter(false);
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
  point(id: string): void;
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
          onPointerMove={() => point(command.id)}
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

interface Found extends Pick<Names, 'isReady' | 'isComplete'> {
  found: Command[];
  total: number;
  state: string;
}

function useFound(mode: PaletteMode, text: string): Found {
  const projectId = currentProject();
  const { path } = address.value;
  // All names are read once something is typed: opening the palette alone costs one request.
  const wantsAll = useRef(false);
  wantsAll.current ||= text.trim() !== '';
  const names = useNames(projectId, wantsAll.current);
  const commands = useMemo(
    () => unique(mode === 'all' ? commandsOf(names, path, projectId) : switchesOf(names, projectId)),
    [names, path, projectId, mode, theme.value],
  );
  const all = useMemo(() => {
    const ofThings = mode === 'all' ? commandsOfThings(names, path, text) : [];
    return ranked([...ofThings, ...commands], text);
  }, [commands, text]);
  const reading = names.isComplete ? '' : `${names.named.length.toLocaleString('en')} names read so far.`;
  return {
    ...{ found: all.slice(0, SHOWN_MAX), total: all.length, state: names.error?.message ?? reading },
    // What cannot be read is waited for by nobody.
    ...{ isReady: names.isReady || names.error !== null, isComplete: names.isComplete || names.error !== null },
  };
}

interface Entering extends Pick<Names, 'isReady' | 'isComplete'> {
  isEntered: boolean;
  best: Command | undefined;
  choose(command: Command): void;
}

/**
 * Enter means what is typed, not what happens to be read and drawn by then: the same keys lead to the same place. It
 * waits for the names of the project, and for the others where those have nothing.
 * @returns takes it down that Enter was pressed, or that something else was done since
 */
function useEnter({ isEntered, best, isReady, isComplete, choose }: Entering): (isEntered: boolean) => void {
  // A new object for each press.
  const [entered, setEntered] = useState(isEntered ? {} : null);
  useLayoutEffect(() => {
    if (!entered || !isReady || !(best || isComplete)) return;
    setEntered(null);
    if (best) choose(best);
  }, [entered, best, isReady, isComplete]);
  return (isPressed) => setEntered(isPressed ? {} : null);
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
