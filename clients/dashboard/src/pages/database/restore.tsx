// Back to a point in time: a slider over the period to which the database can be restored.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Facts, Section } from '../../parts/page';
import { agoText, momentText } from '../../parts/time';
import { navigate } from '../../router';
import { DatabaseFrame, type DatabaseData, type ShownDatabase } from './frame';

const MARKS = graphql(`
  query RestoreMarks($id: ID!) {
    listDatabaseBackups(id: $id, limit: 50, status: completed) {
      data {
        id
        finished_at
        created_at
      }
    }
  }
`);
const COPY = graphql(`
  mutation CopyDatabaseAt($project_id: ID!, $input: CreateDatabaseInput!) {
    createDatabase(project_id: $project_id, input: $input) {
      id
    }
  }
`);
const REPLACE = graphql(`
  mutation RestoreDatabaseAt($id: ID!, $input: RestoreDatabaseInput!) {
    restoreDatabase(id: $id, input: $input) {
      id
    }
  }
`);

type Mark = ResultOf<typeof MARKS>['listDatabaseBackups']['data'][number];

const MINUTE_S = 60;
const HOUR_S = 3_600;

export function Restore({ id }: { id: string }) {
  return (
    <DatabaseFrame
      id={id}
      section="Restore"
      command={(database) => `svc db restore ${database} --at 2026-05-01T10:00:00Z`}
    >
      {(shown) => <Choice shown={shown} />}
    </DatabaseFrame>
  );
}

function Choice({ shown }: { shown: ShownDatabase }) {
  // The end of the period moves on while somebody looks: the slider keeps the one that it began with.
  const [period] = useState(shown.database.point_in_time_window);
  const { data } = useQuery(MARKS, { id: shown.database.id });
  if (!shown.mayChange) return <p class="notice">Developers and owners of the project restore databases.</p>;
  if (!period)
    return (
      <p class="notice">
        {shown.database.name} cannot be restored to a point in time: its engine keeps no log of changes, or no backup
        has been taken since it was created. Backups are on their own page.
      </p>
    );
  const [least, most] = [Math.ceil(Date.parse(period.earliest) / 1_000), Math.floor(Date.parse(period.latest) / 1_000)];
  return <Slider database={shown.database} least={least} most={most} marks={data?.listDatabaseBackups.data ?? []} />;
}

interface SliderProps {
  database: DatabaseData;
  /** In seconds since 1970. */
  least: number;
  most: number;
  marks: readonly Mark[];
}

function Slider({ database, least, most, marks }: SliderProps) {
  const [at, setAt] = useState(most);
  const [asks, setAsks] = useState<'copy' | 'replace' | null>(null);
  const go = (to: number): void => setAt(Math.min(most, Math.max(least, Math.round(to))));
  const time = new Date(at * 1_000);
  const step = most - least > 2 * HOUR_S ? MINUTE_S : 1;
  return (
    <Section title="Restore to a point in time">
      <div class="field">
        <label for="moment">Point in time</label>
        <input
          id="moment"
          type="range"
          min={least}
          max={most}
          step={step}
          value={at}
          list="moments"
          aria-valuetext={`${momentText(time)}, ${agoText(time.toISOString())}`}
          onInput={(event) => go(Number(event.currentTarget.value))}
        />
        <datalist id="moments">
          {marks.map(({ id, finished_at, created_at }) => (
            <option key={id} value={Math.floor(Date.parse(finished_at ?? created_at) / 1_000)} />
          ))}
        </datalist>
        <div class="ends faint">
          <span>{momentText(new Date(least * 1_000))}</span>
          <span>{momentText(new Date(most * 1_000))}</span>
        </div>
      </div>
      <Steps at={at} go={go} most={most} least={least} />
      <Facts
        facts={[
          ['Data as of', <strong aria-live="polite">{momentText(time)}</strong>],
          ['That was', agoText(time.toISOString())],
          ['In UTC', momentText(time, 'UTC')],
        ]}
      />
      <p class="actions">
        <button type="button" class="quiet danger" onClick={() => setAsks('replace')}>
          Replace the data
        </button>
        <button type="button" onClick={() => setAsks('copy')}>
          Restore into a copy
        </button>
      </p>
      {asks && <Question kind={asks} database={database} time={time} onClose={() => setAsks(null)} />}
    </Section>
  );
}

interface StepsProps extends Omit<SliderProps, 'database' | 'marks'> {
  at: number;
  go(to: number): void;
}

function Steps({ at, go, least, most }: StepsProps) {
  const steps: [label: string, seconds: number][] = [
    ['1 hour earlier', -HOUR_S],
    ['1 minute earlier', -MINUTE_S],
    ['1 minute later', MINUTE_S],
    ['1 hour later', HOUR_S],
  ];
  return (
    <div class="columns">
      <p class="steps">
        {steps.map(([label, seconds]) => (
          <button key={label} type="button" class="quiet small" onClick={() => go(at + seconds)}>
            {label}
          </button>
        ))}
      </p>
      <div class="field">
        <label for="exact">Exact time, in the time zone of this computer</label>
        <input
          id="exact"
          type="datetime-local"
          step={1}
          min={localText(least)}
          max={localText(most)}
          value={localText(at)}
          onChange={(event) => {
            const given = Date.parse(event.currentTarget.value) / 1_000;
            if (Number.isFinite(given)) go(given);
          }}
        />
      </div>
    </div>
  );
}

/** `2026-11-26T18:12:44`, the form of such fields. */
function localText(seconds: number): string {
  const offset = new Date(seconds * 1_000).getTimezoneOffset() * 60;
  return new Date((seconds - offset) * 1_000).toISOString().slice(0, 19);
}

interface QuestionProps {
  kind: 'copy' | 'replace';
  database: DatabaseData;
  time: Date;
  onClose(): void;
}

function Question({ kind, database, time, onClose }: QuestionProps) {
  const point_in_time = time.toISOString();
  const copy = async (): Promise<void> => {
    const name = `${database.name.slice(0, 50)}-${point_in_time.slice(5, 16).replace(/\D/g, '')}`;
    const restore_from = { database_id: database.id, point_in_time };
    const input = { name, engine: database.engine, restore_from };
    const { createDatabase } = await request(COPY, { project_id: database.project_id, input });
    navigate(`/databases/${createDatabase.id}`);
  };
  const replace = async (): Promise<void> => {
    await request(REPLACE, { id: database.id, input: { point_in_time } });
    navigate(`/databases/${database.id}`);
  };
  if (kind === 'copy')
    return (
      <Confirm title="Restore into a new database?" verb="Restore" work={copy} onClose={onClose}>
        A copy is created beside this database, with the data of {momentText(time)}. This database stays as it is.
      </Confirm>
    );
  return (
    <Confirm
      title={`Replace the data of ${database.name}?`}
      verb="Replace the data"
      typed={database.name}
      work={replace}
      onClose={onClose}
    >
      Everything that was written after {momentText(time)} is lost, and programs cannot connect until it is done. A copy
      is the safer way.
    </Confirm>
  );
}
