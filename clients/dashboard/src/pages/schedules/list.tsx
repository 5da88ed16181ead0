// Commands that run at certain times.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Problem } from '../../parts/form';
import { showNotice } from '../../parts/notices';
import { Paging } from '../../parts/paging';
import { Empty, Section, Waiting } from '../../parts/page';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { navigate } from '../../router';
import { ApplicationFrame, type Shown } from '../application/frame';
import { isUnfinished } from '../runs/list';
import { Clip } from '../../parts/table';
import { explainCron, inZone } from './cron';
import { appFlags } from '../../parts/command';

const SCHEDULES = graphql(`
  query Schedules($id: ID!, $cursor: String) {
    listSchedules(id: $id, limit: 20, cursor: $cursor) {
      data {
        id
        name
        cron
        time_zone
        command
        enabled
        status_reason
        next_run_at
        failures_in_a_row
        last_run {
          id
          status
          finished_at
        }
      }
      next_cursor
    }
  }
`);
const TRIGGER = graphql(`
  mutation TriggerSchedule($id: ID!, $schedule_id: ID!) {
    triggerSchedule(id: $id, schedule_id: $schedule_id) {
      id
    }
  }
`);
const ENABLE = graphql(`
  mutation EnableSchedule($id: ID!, $schedule_id: ID!, $input: UpdateScheduleInput!) {
    updateSchedule(id: $id, schedule_id: $schedule_id, input: $input) {
      id
    }
  }
`);

type Schedule = ResultOf<typeof SCHEDULES>['listSchedules']['data'][number];

export function Schedules({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Schedules" command={(app) => `svc schedules ls${app}`}>
      {(shown) => <List shown={shown} />}
    </ApplicationFrame>
  );
}

function List({ shown }: { shown: Shown }) {
  const { id } = shown.application;
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(SCHEDULES, { id, cursor });
  const list = data?.listSchedules;
  useMoving(Boolean(list?.data.some(({ last_run }) => isUnfinished(last_run?.status))), reload);
  const add = shown.mayChange && (
    <a role="button" href={`/applications/${id}/schedules/new`}>
      New schedule
    </a>
  );
  return (
    <Section title="Schedules" actions={add}>
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty
          title="No schedules yet"
          command={
            "svc schedules create nightly --cron '30 2 * * *' --command 'node report.js'" + appFlags(shown.application)
          }
        >
          A schedule starts a run of a command, such as a report each night or a clean-up each hour.
        </Empty>
      )}
      <ul class="rows schedules">
        {list?.data.map((schedule) => (
          <Row key={schedule.id} schedule={schedule} shown={shown} reload={reload} />
        ))}
      </ul>
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
    </Section>
  );
}

function Row({ schedule, shown, reload }: { schedule: Schedule; shown: Shown; reload(): Promise<void> }) {
  const { id } = shown.application;
  const { name, cron, time_zone, last_run: last, failures_in_a_row: failures } = schedule;
  return (
    <li class="row">
      <div>
        <strong>
          <a href={`/applications/${id}/schedules/${schedule.id}`}>{name}</a>
        </strong>{' '}
        {schedule.enabled || <Status value="disabled" />}
        <br />
        {explainCron(cron, time_zone).text ?? cron} <span class="faint">({time_zone})</span>
        <br />
        <Clip code text={schedule.command} />
        {schedule.status_reason && <p class="notice bad">{schedule.status_reason}</p>}
        {failures > 0 && <p class="faint">{failures} in a row failed or could not start.</p>}
      </div>
      <NextTimes schedule={schedule} />
      <div>
        Last run
        <br />
        {last ? (
          <a class="plain-link" href={`/applications/${id}/runs/${last.id}`}>
            <Status value={last.status} /> <Ago time={last.finished_at} />
          </a>
        ) : (
          <span class="faint">never</span>
        )}
      </div>
      {shown.mayChange && <Actions id={id} schedule={schedule} reload={reload} />}
    </li>
  );
}

function NextTimes({ schedule: { enabled, next_run_at: first, cron, time_zone } }: { schedule: Schedule }) {
  if (!enabled || !first) return <div class="faint">Will not run.</div>;
  const [, ...later] = explainCron(cron, time_zone).next;
  return (
    <div>
      Next times
      <ol class="times">
        {[new Date(first), ...later].map((time) => (
          <li key={time.toISOString()}>
            <time dateTime={time.toISOString()}>{inZone(time, time_zone)}</time>
          </li>
        ))}
      </ol>
    </div>
  );
}

interface ActionsProps {
  id: string;
  schedule: Schedule;
  reload(): Promise<void>;
}

function Actions({ id, schedule, reload }: ActionsProps) {
  const one = { id, schedule_id: schedule.id };
  const trigger = useAction(async () => {
    const { triggerSchedule } = await request(TRIGGER, one);
    navigate(`/applications/${id}/runs/${triggerSchedule.id}`);
  });
  const enable = useAction(async () => {
    const set = async (enabled: boolean): Promise<void> => {
      await request(ENABLE, { ...one, input: { enabled } });
      await reload();
    };
    await set(!schedule.enabled);
    showNotice({
      text: `The schedule ${schedule.name} is ${schedule.enabled ? 'disabled' : 'enabled'}.`,
      undo: () => set(schedule.enabled),
    });
  });
  return (
    <div class="actions">
      <button type="button" class="quiet small" onClick={() => void trigger.run()}>
        Run now<span class="off-screen"> {schedule.name}</span>
      </button>
      <button type="button" class="quiet small" onClick={() => void enable.run()}>
        {schedule.enabled ? 'Disable' : 'Enable'}
        <span class="off-screen"> {schedule.name}</span>
      </button>
      <Problem error={trigger.error ?? enable.error} />
    </div>
  );
}
