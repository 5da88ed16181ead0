// Creates a schedule, or changes one.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Check, Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { Section, Waiting } from '../../parts/page';
import { navigate } from '../../router';
import { ApplicationFrame, type Shown } from '../application/frame';
import { explainCron, inZone, ownTimeZone } from './cron';
import { reversalText } from '../../parts/reversal';
import { revertChange } from '../../parts/undo';

const SCHEDULE = graphql(`
  query Schedule($id: ID!, $schedule_id: ID!) {
    getSchedule(id: $id, schedule_id: $schedule_id) {
      id
      name
      cron
      time_zone
      command
      process_type
      timeout_seconds
      concurrency
      missed
      enabled
    }
  }
`);
const CREATE = graphql(`
  mutation CreateSchedule($id: ID!, $input: CreateScheduleInput!) {
    createSchedule(id: $id, input: $input) {
      id
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateSchedule($id: ID!, $schedule_id: ID!, $input: UpdateScheduleInput!) {
    updateSchedule(id: $id, schedule_id: $schedule_id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteSchedule($id: ID!, $schedule_id: ID!) {
    deleteSchedule(id: $id, schedule_id: $schedule_id)
  }
`);

type Schedule = ResultOf<typeof SCHEDULE>['getSchedule'];

const FIELDS = ['name', 'cron', 'time_zone', 'command', 'process_type', 'timeout_seconds', 'concurrency', 'missed'];
const CONCURRENCY = [
  { value: 'forbid', label: 'skip' },
  { value: 'allow', label: 'start another run beside it' },
  { value: 'replace', label: 'cancel it and start another one' },
];
const MISSED = [
  { value: 'run_once', label: 'start one run afterwards' },
  { value: 'skip', label: 'skip' },
];

export function NewSchedule({ id }: { id: string }) {
  return (
    <ApplicationFrame
      id={id}
      section="New schedule"
      command={(app) => `svc schedules create nightly --cron '30 2 * * *' --command 'node report.js'${app}`}
    >
      {(shown) =>
        shown.mayChange ? (
          <Edit shown={shown} schedule={null} />
        ) : (
          <p>Your role in this project may not create schedules.</p>
        )
      }
    </ApplicationFrame>
  );
}

export function SchedulePage({ id, schedule_id }: { id: string; schedule_id: string }) {
  return (
    <ApplicationFrame id={id} section="Schedule" command={`svc api getSchedule ${id} ${schedule_id}`}>
      {(shown) => <Loader shown={shown} scheduleId={schedule_id} />}
    </ApplicationFrame>
  );
}

function Loader({ shown, scheduleId }: { shown: Shown; scheduleId: string }) {
  const { data, error } = useQuery(SCHEDULE, { id: shown.application.id, schedule_id: scheduleId });
  if (!data) return <Waiting error={error} rows={8} />;
  return (
    <fieldset class="bare" disabled={!shown.mayChange}>
      <Edit shown={shown} schedule={data.getSchedule} />
    </fieldset>
  );
}

function Edit({ shown, schedule }: { shown: Shown; schedule: Schedule | null }) {
  const { id } = shown.application;
  const fields = useFields(textsOf(schedule));
  const [enabled, setEnabled] = useState(schedule?.enabled ?? true);
  const action = useAction(async () => {
    const { process_type, timeout_seconds, concurrency, missed, ...texts } = fields.values;
    const policy = { concurrency: concurrency as Schedule['concurrency'], missed: missed as Schedule['missed'] };
    const size = { process_type: process_type || null, timeout_seconds: Number(timeout_seconds) };
    const input = { ...texts, ...size, ...policy, enabled };
    if (schedule) await request(UPDATE, { id, schedule_id: schedule.id, input });
    else await request(CREATE, { id, input });
    navigate(`/applications/${id}/schedules`);
  });
  const name = { required: true, placeholder: 'nightly' };
  return (
    <Section
      title={schedule ? `Schedule ${schedule.name}` : 'New schedule'}
      actions={schedule && shown.mayChange && <Remove shown={shown} schedule={schedule} />}
    >
      <Form action={action}>
        <Field label="Name" {...fields.of('name', action)} {...name} />
        <Field label="Command" {...fields.of('command', action)} required placeholder="node report.js" />
        <Times fields={fields} action={action} />
        <Rules fields={fields} action={action} types={shown.application.processes.map(({ type }) => type)} />
        <Check
          label="Enabled"
          name="enabled"
          checked={enabled}
          onChange={(event) => setEnabled(event.currentTarget.checked)}
          hint="A disabled schedule keeps its settings, and can be run by hand."
        />
        <Problem error={action.error} fields={FIELDS} />
        {shown.mayChange && (
          <footer class="actions">
            <Submit action={action}>{schedule ? 'Save' : 'Create the schedule'}</Submit>
          </footer>
        )}
      </Form>
    </Section>
  );
}

type Texts = ReturnType<typeof textsOf>;

function textsOf(schedule: Schedule | null) {
  return {
    name: schedule?.name ?? '',
    command: schedule?.command ?? '',
    cron: schedule?.cron ?? '30 2 * * *',
    time_zone: schedule?.time_zone ?? ownTimeZone(),
    process_type: schedule?.process_type ?? '',
    timeout_seconds: String(schedule?.timeout_seconds ?? 3_600),
    concurrency: String(schedule?.concurrency ?? 'forbid'),
    missed: String(schedule?.missed ?? 'run_once'),
  };
}

interface PartProps {
  fields: ReturnType<typeof useFields<Texts>>;
  action: ReturnType<typeof useAction<void>>;
}

function Times({ fields, action }: PartProps) {
  const { cron, time_zone } = fields.values;
  const { text, next } = explainCron(cron, time_zone);
  const zones = 'supportedValuesOf' in Intl ? Intl.supportedValuesOf('timeZone') : [];
  return (
    <>
      <div class="columns">
        <Field
          label="When (cron)"
          {...fields.of('cron', action)}
          required
          autocomplete="off"
          hint="Minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly."
        />
        <Field label="Time zone" {...fields.of('time_zone', action)} required list="time-zones" />
        <datalist id="time-zones">
          {['UTC', ...zones].map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
      <div class="notice" aria-live="polite" data-testid="meaning">
        {text === null ? 'Not a valid cron expression and time zone.' : `${text}. Next times:`}
        <ol class="times">
          {next.map((time) => (
            <li key={time.toISOString()}>{inZone(time, time_zone)}</li>
          ))}
        </ol>
      </div>
    </>
  );
}

function Rules({ fields, action, types }: PartProps & { types: string[] }) {
  return (
    <div class="columns">
      <Select
        label="If the last run has not finished"
        {...fields.of('concurrency', action)}
        options={CONCURRENCY}
        onChange={(concurrency) => fields.set({ concurrency })}
      />
      <Select
        label="Runs missed while the platform is down"
        {...fields.of('missed', action)}
        options={MISSED}
        onChange={(missed) => fields.set({ missed })}
      />
      <Select
        label="Size and variables of the process type"
        {...fields.of('process_type', action)}
        options={[
          { value: '', label: 'web, or the first one' },
          ...types.map((type) => ({ value: type, label: type })),
        ]}
        onChange={(process_type) => fields.set({ process_type })}
      />
      <Field label="Time limit in seconds" {...fields.of('timeout_seconds', action)} type="number" required min={1} />
    </div>
  );
}

function Remove({ shown, schedule }: { shown: Shown; schedule: Schedule }) {
  const { id, project_id } = shown.application;
  const [asks, setAsks] = useState(false);
  const work = async (): Promise<void> => {
    await request(DELETE, { id, schedule_id: schedule.id });
    navigate(`/applications/${id}/schedules`);
  };
  const undo = async (): Promise<void> => {
    await revertChange({ projectId: project_id, resourceId: schedule.id, action: 'schedule.deleted' });
    navigate(`/applications/${id}/schedules/${schedule.id}`);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => setAsks(true)}>
        Delete
      </button>
      {asks && (
        <Confirm
          title={`Delete ${schedule.name}?`}
          verb="Delete"
          work={work}
          done={`The schedule ${schedule.name} was deleted.`}
          undo={undo}
          onClose={() => setAsks(false)}
        >
          Its command does not run any more. Runs that it has started stay in the list of runs.{' '}
          {reversalText('activity', project_id)}
        </Confirm>
      )}
    </>
  );
}
