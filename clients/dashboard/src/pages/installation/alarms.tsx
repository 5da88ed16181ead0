// Alarms of the installation: what is wrong, what was, and which notifiers are told.
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { NotifierChoice } from '../../parts/notifier_choice';
import { Section, Waiting } from '../../parts/page';
import { RowsTable } from '../../parts/table';
import { Ago, durationText } from '../../parts/time';
import { OperatorPage } from './frame';

const ALARMS = graphql(`
  query InstallationAlarms {
    installationAlarms {
      evaluated_at
      current {
        id
        title
        detail
        started_at
      }
      past {
        id
        title
        started_at
        ended_at
      }
      notifiers {
        id
      }
      candidates {
        id
        name
        type
        enabled
        project_name
      }
      default_receivers
    }
  }
`);
const CHOOSE = graphql(`
  mutation ChooseAlarmNotifiers($ids: [ID!]!) {
    chooseAlarmNotifiers(ids: $ids) {
      evaluated_at
    }
  }
`);

type Alarms = ResultOf<typeof ALARMS>['installationAlarms'];
type Notifier = Alarms['candidates'][number];

const POLL_MS = 15_000;
/** They are evaluated several times a minute. */
const SILENT_MS = 5 * 60_000;

export function AlarmsPage() {
  return (
    <OperatorPage title="Alarms">
      <State />
    </OperatorPage>
  );
}

/** On the page of the installation. */
export function AlarmsSummary() {
  const { data, error } = useQuery(ALARMS, {}, POLL_MS);
  const alarms = data?.installationAlarms;
  return (
    <Section title="Alarms" actions={<a href="/installation/alarms">Alarms and who is told</a>}>
      {alarms ? <Current alarms={alarms} /> : <Waiting error={error} rows={1} />}
    </Section>
  );
}

function State() {
  const { data, error, reload } = useQuery(ALARMS, {}, POLL_MS);
  const alarms = data?.installationAlarms;
  if (!alarms) return <Waiting error={error} rows={6} />;
  const chosen = alarms.notifiers.map(({ id }) => id);
  return (
    <>
      <Section title="Now">
        <Current alarms={alarms} />
      </Section>
      <Section title="Who is told">
        {chosen.length === 0 && <p class="notice">{receiversText(alarms)}</p>}
        {/* What somebody else has chosen meanwhile begins the form anew. */}
        <Choice key={chosen.join()} candidates={alarms.candidates} chosen={chosen} reload={reload} />
      </Section>
      {alarms.past.length > 0 && (
        <Section title="Past alarms">
          <RowsTable
            label="Alarms that have ended"
            rows={alarms.past}
            keyOf={({ id }) => id}
            columns={{
              Alarm: ({ title }) => title,
              Began: ({ started_at }) => <Ago time={started_at} />,
              Lasted: ({ started_at, ended_at }) => durationText(started_at, ended_at),
            }}
          />
        </Section>
      )}
    </>
  );
}

function Current({ alarms: { current, evaluated_at: at } }: { alarms: Alarms }) {
  const isSilent = at === null || Date.now() - Date.parse(at) > SILENT_MS;
  return (
    <>
      {isSilent && (
        <p class="notice bad">
          Alarms are not evaluated
          {at !== null && (
            <>
              {' '}
              since <Ago time={at} />
            </>
          )}
          : no worker runs, or it cannot reach the database. See the log of the service.
        </p>
      )}
      {current.length === 0 && !isSilent && (
        <p>
          Nothing is wrong.{' '}
          <span class="faint">
            Evaluated <Ago time={at} />.
          </span>
        </p>
      )}
      {current.map(({ id, title, detail, started_at }) => (
        <div key={id} class="notice bad">
          <strong>{title}</strong>, <Ago time={started_at} />
          <br />
          {detail}
        </div>
      ))}
    </>
  );
}

function receiversText({ default_receivers: addresses }: Alarms): string {
  if (addresses.length) return `No notifier is chosen: operators get e-mail at ${addresses.join(', ')}.`;
  return 'Nobody is told: no notifier is chosen, and this installation sends no mail to operators.';
}

interface ChoiceProps {
  candidates: readonly Notifier[];
  chosen: readonly string[];
  reload(): Promise<void>;
}

function Choice({ candidates, chosen, reload }: ChoiceProps) {
  if (!candidates.length)
    return <p>You have no notifiers. Create one at an observer of one of your projects, then choose it here.</p>;
  const save = async (ids: readonly string[]): Promise<void> => {
    await request(CHOOSE, { ids: [...ids] });
    await reload();
  };
  return <NotifierChoice notifiers={candidates} chosen={chosen} save={save} about={originOf} />;
}

function originOf({ type, enabled, project_name }: Notifier) {
  return (
    <small class="faint">
      {type} of {project_name}
      {!enabled && ', switched off'}
    </small>
  );
}
