// The log of an application: what was written and what is written now, a range of times, or the lines around one.
import { useEffect, useRef, useState } from 'preact/hooks';
import { graphql } from '../../api/graphql';
import { timeOfApi } from '../../api/client';
import { useStream } from '../../api/follow';
import { asApiError, useAction } from '../../api/use_query';
import { Problem } from '../../parts/form';
import { LogLines, LogView, type LogLine } from '../../parts/log_view';
import { useWrapping, WrapSwitch, type Wrapping } from '../../parts/log_wrap';
import { Status } from '../../parts/status';
import { address } from '../../router';
import { ApplicationFrame, type ApplicationData } from './frame';
import { LogContext } from './log_context';
import { FilterBar, RANGES } from './log_filters';
import { addressOf, DOWNLOAD_MAX, lineOf, readAll, readLines, type Filters, type Range, type Row } from './log_lines';

const FOLLOW = graphql(`
  subscription ApplicationTail(
    $id: ID!
    $since: DateTime
    $search: String
    $level: LogLevel
    $source: LogSource
    $type: String
    $after: String
  ) {
    followApplicationLogs(
      id: $id
      since: $since
      search: $search
      level: $level
      source: $source
      process_type: $type
      after: $after
    ) {
      position
      timestamp
      level
      source
      message
      process_type
    }
  }
`);

export function ApplicationLogs({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Logs" command={(app) => `svc logs --follow${app}`}>
      {({ application }) => <Logs application={application} />}
    </ApplicationFrame>
  );
}

function Logs({ application }: { application: ApplicationData }) {
  const { query } = address.value;
  const { wraps, wrap } = useWrapping();
  const line = query.get('line');
  const filters: Filters = {
    search: query.get('search') || null,
    level: (query.get('level') || null) as Filters['level'] & string,
    source: (query.get('source') || null) as Filters['source'] & string,
    type: query.get('type') || null,
  };
  const range = query.get('range') ?? '';
  const given: Range = { since: query.get('since'), until: query.get('until') };
  if (line) return <LogContext key={line} id={application.id} line={line} {...{ wraps, wrap }} />;
  return (
    <>
      <FilterBar {...{ application, filters, range, given }} />
      <Tail
        key={JSON.stringify([filters, range, given])}
        id={application.id}
        {...{ filters, range, given, wraps, wrap }}
      />
    </>
  );
}

interface TailProps extends Wrapping {
  id: string;
  filters: Filters;
  range: string;
  given: Range;
}

function Tail({ id, filters, range, given, wraps, wrap }: TailProps) {
  const asked = useRef({ ...filters, ...rangeOf(range, given) }).current;
  const { lines, version, problem, state, loadOlder, waiting, pause, resume } = useTail(id, filters, asked);
  const isEmptyByChoice = Object.values(asked).some(Boolean);
  return (
    <>
      <header class="log-head">
        {asked.until ? <span>A range of the past</span> : <Status value={waiting === null ? state : 'paused'} />}
        <span class="faint">{lines.length === 1 ? '1 line' : `${lines.length.toLocaleString('en')} lines`}</span>
        <div class="log-tools">
          {!asked.until && (
            <button type="button" class="quiet small" onClick={waiting === null ? pause : resume}>
              {waiting === null ? 'Pause' : `Resume, ${waiting.toLocaleString('en')} new`}
            </button>
          )}
          <WrapSwitch {...{ wraps, wrap }} />
          <Download id={id} asked={asked} />
        </div>
      </header>
      {problem && (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <LogView
        label="Log of the application"
        lines={lines}
        version={version}
        wraps={wraps}
        empty={isEmptyByChoice ? 'No line matches.' : 'Nothing has been written yet.'}
        addressOf={addressOf}
        onTop={() => void loadOlder(false)}
      />
    </>
  );
}

/** The lines of a range, and those that come where it has no end. */
function useTail(id: string, filters: Filters, asked: Filters & Range) {
  const lines = useRef(new LogLines()).current;
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const [since, setSince] = useState<string | null>(null);
  const held = useRef<LogLine[] | null>(null);
  const [waiting, setWaiting] = useState<number | null>(null);
  const older = useRef<{ cursor: string | null; isLoading: boolean }>({ cursor: null, isLoading: false });
  // The stream begins with the time of the newest line that was listed: these lines come a second time.
  const known = useRef<string[]>([]);
  const changed = (): void => setVersion((before) => before + 1);
  const loadOlder = async (isFirst: boolean): Promise<void> => {
    if (older.current.isLoading || (!isFirst && !older.current.cursor)) return;
    older.current.isLoading = true;
    try {
      const page = await readLines(id, asked, older.current.cursor);
      older.current.cursor = page.next_cursor;
      lines.prepend(page.data.map(lineOf).reverse());
      if (isFirst && !asked.until) {
        const newest = page.data[0]?.timestamp ?? new Date(timeOfApi() - 1_000).toISOString();
        known.current = page.data.filter(({ timestamp }) => timestamp === newest).map(lineKey);
        setSince(newest);
      }
      changed();
    } catch (error) {
      setProblem(asApiError(error).message);
    }
    older.current.isLoading = false;
  };
  useEffect(() => void loadOlder(true), []);
  const state = useStream(FOLLOW, since === null ? null : { id, ...filters, since }, (rows) => {
    const fresh = rows.filter((row) => !takeOut(known.current, lineKey(row))).map(lineOf);
    if (held.current) return setWaiting(held.current.push(...fresh));
    lines.append(fresh);
    changed();
  });
  const hold = (some: LogLine[] | null): void => {
    held.current = some;
    setWaiting(some?.length ?? null);
  };
  const resume = (): void => {
    lines.append(held.current ?? []);
    hold(null);
    changed();
  };
  return { lines, version, problem, state, loadOlder, waiting, pause: () => hold([]), resume };
}

/** @returns null as an end that is open: lines are followed then */
function rangeOf(range: string, given: Range): Range {
  const { ms } = RANGES[range] ?? {};
  if (ms) return { since: new Date(timeOfApi() - ms).toISOString(), until: null };
  return range === 'between' ? given : { since: null, until: null };
}

function Download({ id, asked }: { id: string; asked: Filters & Range }) {
  const [count, setCount] = useState(0);
  const action = useAction(async () => {
    const all = new LogLines();
    all.append(await readAll(id, asked, setCount));
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([`${all.text()}\n`], { type: 'text/plain' }));
    link.download = `${id}-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  const most = `All lines that match, the newest ${DOWNLOAD_MAX.toLocaleString('en')} at most`;
  return (
    <>
      <button
        type="button"
        class="quiet small"
        title={most}
        aria-busy={action.isRunning ? true : undefined}
        onClick={() => void action.run()}
      >
        {action.isRunning ? `Reading, ${count.toLocaleString('en')} lines` : 'Download'}
      </button>
      <Problem error={action.error} />
    </>
  );
}

function lineKey({ timestamp, source, message }: Row): string {
  return `${timestamp} ${source} ${message}`;
}

function takeOut(keys: string[], key: string): boolean {
  const index = keys.indexOf(key);
  if (index >= 0) keys.splice(index, 1);
  return index >= 0;
}
