// The terminal of a run. xterm is loaded here alone, and writes style elements: this page has a policy of its own
// (server/http/dashboard.ts), so it is entered and left by loading a document.
import '@xterm/xterm/css/xterm.css';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useQuery } from '../../api/use_query';
import { Section, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { ApplicationFrame, type Shown } from '../application/frame';
import { PendingVariables } from '../attachments/pending';
import { Attachment, encode, type Exit } from './attachment';
import { RUN } from './run';
import { commandText } from './shell';

export function TerminalPage({ id, run_id }: { id: string; run_id: string }) {
  return (
    <ApplicationFrame id={id} section="Terminal" command={(app) => `svc ssh${app}`}>
      {(shown) => <Loader shown={shown} runId={run_id} />}
    </ApplicationFrame>
  );
}

function Loader({ shown, runId }: { shown: Shown; runId: string }) {
  const { id } = shown.application;
  const { data, error } = useQuery(RUN, { id, run_id: runId });
  if (!data) return <Waiting error={error} rows={10} />;
  if (!shown.mayChange) return <p>Your role in this project may not open terminals.</p>;
  if (!data.getRun.tty) return <p>This run has no terminal. Its output is in its log.</p>;
  return (
    <>
      <PendingVariables shown={shown} note="This terminal has the variables of what ran when it was opened." />
      <Screen id={id} runId={runId} command={data.getRun.command} />
    </>
  );
}

interface ScreenProps {
  id: string;
  runId: string;
  command: string;
}

interface Seen {
  state: 'connecting' | 'live' | 'waiting' | 'ended';
  isWriter: boolean;
  message: string | null;
  exit: Exit | null;
}

function Screen({ id, runId, command }: ScreenProps) {
  const place = useRef<HTMLDivElement>(null);
  const link = useRef<HTMLAnchorElement>(null);
  const [seen, setSeen] = useState<Seen>({ state: 'connecting', isWriter: true, message: null, exit: null });
  const see = (part: Partial<Seen>): void => setSeen((before) => ({ ...before, ...part }));
  useEffect(() => {
    if (!place.current) return undefined;
    return openTerminal(place.current, { id, runId, see, leave: () => link.current?.focus() });
  }, [id, runId]);
  return (
    <Section
      title="Terminal"
      actions={
        <a ref={link} class="quiet" role="button" href={`/applications/${id}/runs/${runId}`}>
          Back to the run
        </a>
      }
    >
      <header class="log-head">
        <code class="clip">{commandText(command)}</code>
        <Status value={seen.state} />
      </header>
      <div ref={place} class="terminal-place" role="group" aria-label="Terminal" />
      <p class="headline" role="status">
        {sentenceOf(seen)}
      </p>
      <p class="faint">
        <kbd>Ctrl</kbd> <kbd>M</kbd> leaves the terminal for the other controls of the page.
      </p>
    </Section>
  );
}

function sentenceOf({ state, isWriter, message, exit }: Seen): string {
  const parts = [message ?? ''];
  if (state === 'live' && !isWriter)
    parts.push('Somebody else writes to this run, or it has no input: you can only watch.');
  if (state === 'waiting') parts.push('The connection broke off. Connecting again.');
  if (state === 'ended') parts.push(exit ? endOf(exit) : 'The terminal is closed.');
  return parts.filter(Boolean).join(' ');
}

function endOf({ code, signal }: Exit): string {
  if (signal) return `The command was ended by ${signal}, exit code ${code}.`;
  return code === null ? 'The command has ended.' : `The command has ended with exit code ${code}.`;
}

interface Opened {
  id: string;
  runId: string;
  see(part: Partial<Seen>): void;
  leave(): void;
}

/** @returns what closes it */
function openTerminal(place: HTMLElement, { id, runId, see, leave }: Opened): () => void {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const theme = { background: color('--log-ground'), foreground: color('--log-text'), cursor: color('--log-text') };
  const terminal = new Terminal({ theme, fontFamily: color('--mono'), fontSize: 13, scrollback: 5_000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const attachment = new Attachment(`/v2/applications/${id}/runs/${runId}/attach`, {
    clear: () => terminal.reset(),
    write: (bytes, shown) => terminal.write(bytes, shown),
    ready(isWriter) {
      see({ isWriter });
      attachment.resize(terminal.rows, terminal.cols);
    },
    state: (state) => see({ state }),
    message: (message) => see({ message }),
    exit: (exit) => {
      terminal.options.disableStdin = true;
      see({ exit });
    },
  });
  terminal.onData((text) => attachment.input(encode(text)));
  terminal.onBinary((text) => attachment.input(Uint8Array.from(text, (one) => one.charCodeAt(0))));
  terminal.onResize(({ rows, cols }) => attachment.resize(rows, cols));
  terminal.attachCustomKeyEventHandler((event) => {
    if (!event.ctrlKey || event.key !== 'm') return true;
    if (event.type === 'keydown') leave();
    return false;
  });
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(place);
  attachment.connect();
  terminal.focus();
  return () => {
    resized.disconnect();
    attachment.close();
    terminal.dispose();
  };
}
