// Which lines of a log are shown, kept in the address of the page.
import { useId, useState } from 'preact/hooks';
import { setQuery } from '../../router';
import type { Filters, Range } from './log_lines';
import type { ApplicationData } from './frame';

/** Beside these, a range has two times of its own. */
export const RANGES: Record<string, { label: string; ms: number }> = {
  '15m': { label: 'last 15 minutes', ms: 900_000 },
  '1h': { label: 'last hour', ms: 3_600_000 },
  '24h': { label: 'last 24 hours', ms: 86_400_000 },
  '7d': { label: 'last 7 days', ms: 604_800_000 },
};

interface FilterBarProps {
  application: ApplicationData;
  filters: Filters;
  range: string;
  given: Range;
}

export function FilterBar({ application, filters, range, given }: FilterBarProps) {
  const [search, setSearch] = useState(filters.search ?? '');
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const count = [range, filters.level, filters.source, filters.type].filter(Boolean).length;
  const types = application.processes.map(({ type }) => type);
  return (
    <form
      class="filters log-filters"
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
      <button type="submit" class="quiet">
        Search
      </button>
      <button
        type="button"
        class="quiet fold"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        Filters{count > 0 && ` (${count})`}
      </button>
      <div id={id} class={isOpen ? 'folded is-open' : 'folded'}>
        <label>
          <span>Time</span>
          <select value={range} onChange={(event) => chooseRange(event.currentTarget.value)}>
            <option value="">all, live</option>
            {Object.entries(RANGES).map(([value, { label }]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
            <option value="between">between …</option>
          </select>
        </label>
        {range === 'between' && (
          <>
            <TimeField label="From" name="since" value={given.since} />
            <TimeField label="Until" name="until" value={given.until} />
          </>
        )}
        <Choice label="Level" name="level" value={filters.level} options={['error', 'warning', 'info', 'debug']} />
        <Choice label="Source" name="source" value={filters.source} options={['app', 'router', 'system']} />
        <Choice label="Process" name="type" value={filters.type} options={types} />
      </div>
    </form>
  );
}

function chooseRange(range: string): void {
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
  setQuery({ range, since: range === 'between' ? hourAgo : '', until: '' });
}

/** In the time of the browser, as the lines are; in the address it is UTC. */
function TimeField({ label, name, value }: { label: string; name: string; value: string | null }) {
  const text = value ? localText(new Date(value)) : '';
  return (
    <label>
      <span>{label}</span>
      <input
        type="datetime-local"
        step={1}
        value={text}
        onChange={({ currentTarget }) => {
          const time = new Date(currentTarget.value);
          setQuery({ [name]: Number.isNaN(time.getTime()) ? '' : time.toISOString() });
        }}
      />
    </label>
  );
}

function localText(time: Date): string {
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
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
