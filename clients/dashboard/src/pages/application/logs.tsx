// The log of an application: what was written, and what is written now.
import { useEffect, useRef, useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type VariablesOf } from '../../api/graphql';
import { useStream } from '../../api/follow';
import { asApiError } from '../../api/use_query';
import { LogLines, LogView, type LogLine } from '../../parts/log_view';
import { Status } from '../../parts/status';
import { address, setQuery } from '../../router';
import { ApplicationFrame, type ApplicationData } from './frame';

const OLDER = graphql(`
  query ApplicationLogs(
    $id: ID!
    $cursor: String
    $search: String
    $level: LogLevel
    $source: LogSource
    $type: String
  ) {
    listApplicationLogs(
      id: $id
      limit: 1000
      cursor: $cursor
      search: $search
      level: $level
      source: $source
      process_type: $type
    ) {
      data {
        timestamp
        level
        source
        message
        process_type
      }
      next_cursor
    }
  }
`);
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

type Filters = Omit<VariablesOf<typeof FOLLOW>, 'id' | 'since' | 'after'>;
type Row = Omit<LogLine, 'origin'> & { source: string; process_type: string | null };

export function ApplicationLogs({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Logs" command={`svc logs --follow --app ${id}`}>
      {({ application }) => <Logs application={application} />}
    </ApplicationFrame>
  );
}

function Logs({ application }: { application: ApplicationData }) {
  const { query } = address.value;
  const filters: Filters = {
    search: query.get('search') || null,
    level: (query.get('level') || null) as Filters['level'] & string,
    source: (query.get('source') || null) as Filters['source'] & string,
    type: query.get('type') || null,
  };
  return (
    <>
      <FilterBar application={application} filters={filters} />
      <Tail key={JSON.stringify(filters)} id={application.id} filters={filters} />
    </>
  );
}

function FilterBar({ application, filters }: { application: ApplicationData; filters: Filters }) {
  const [search, setSearch] = useState(filters.search ?? '');
  return (
    <form
      class="filters"
      aria-label="Lines to show"
      onSubmit={(event) => {
        event.preventDefault();
        setQuery({ search });
      }}
    >
      <label>
        <span>Search</span>
        <input type="search" value={search} maxLength={200} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <Choice label="Level" name="level" value={filters.level} options={['error', 'warning', 'info', 'debug']} />
      <Choice label="Source" name="source" value={filters.source} options={['app', 'router', 'system']} />
      <Choice
        label="Process"
        name="type"
        value={filters.type}
        options={application.processes.map(({ type }) => type)}
      />
      <button type="submit" class="quiet">
        Search
      </button>
    </form>
  );
}

interface ChoiceProps {
  label: string;
  name: string;
  value: string | null | undefined;
  options: readonly string[];
}

function Choice({ label, name, value, options }: ChoiceProps) {
  return (
    <label>
      <span>{label}</span>
      <select value={value ?? ''} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}

function Tail({ id, filters }: { id: string; filters: Filters }) {
  const lines = useRef(new LogLines()).current;
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const [since, setSince] = useState<string | null>(null);
  const older = useRef<{ cursor: string | null; isLoading: boolean }>({ cursor: null, isLoading: false });
  // The stream begins with the time of the newest line that was listed: these lines come a second time.
  const known = useRef<string[]>([]);
  const changed = (): void => setVersion((before) => before + 1);
  const loadOlder = async (isFirst: boolean): Promise<void> => {
    if (older.current.isLoading || (!isFirst && !older.current.cursor)) return;
    older.current.isLoading = true;
    try {
      const { listApplicationLogs: page } = await request(OLDER, { id, ...filters, cursor: older.current.cursor });
      older.current.cursor = page.next_cursor;
      lines.prepend(page.data.map(lineOf).reverse());
      if (isFirst) {
        const newest = page.data[0]?.timestamp ?? new Date(Date.now() - 1_000).toISOString();
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
    lines.append(rows.filter((row) => !takeOut(known.current, lineKey(row))).map(lineOf));
    changed();
  });
  return (
    <>
      <header class="log-head">
        <Status value={state} />
        <span class="faint">{lines.length.toLocaleString('en')} lines</span>
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
        empty={Object.values(filters).some(Boolean) ? 'No line matches.' : 'Nothing has been written yet.'}
        onTop={() => void loadOlder(false)}
      />
    </>
  );
}

function lineOf({ source, process_type, ...line }: Row): LogLine {
  return { ...line, origin: source === 'app' ? (process_type ?? 'app') : source };
}

function lineKey({ timestamp, source, message }: Row): string {
  return `${timestamp} ${source} ${message}`;
}

function takeOut(keys: string[], key: string): boolean {
  const index = keys.indexOf(key);
  if (index >= 0) keys.splice(index, 1);
  return index >= 0;
}
