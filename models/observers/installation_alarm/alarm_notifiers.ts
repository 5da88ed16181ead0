// Which notifiers are told of alarms of the installation, and the alarms for operators.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import type { NotifierType } from '../../../schema/types';
import { noteChange } from '../../base/row';
import { requireOperator } from '../../identity/operator';
import { sessionUser, wrongField } from '../../identity/user';
import { alarmsEvaluatedAt, currentAlarms, operatorAddresses, pastAlarms, type AlarmRow } from '../installation_alarm';

interface AlarmNotifier {
  id: string;
  name: string;
  type: NotifierType;
  enabled: boolean;
  project_id: string;
  project_name: string;
}

const COLUMNS = 'n.id, n.name, n.type, n.enabled, n.project_id, p.name as project_name';
const LIVE = 'p.id = n.project_id and p.deleted_at is null and n.deleted_at is null';
const CHOSEN = named(`select ${COLUMNS} from alarm_notifiers a join notifiers n on n.id = a.notifier_id
  join projects p on ${LIVE} order by p.name, n.name, n.id`);
const CANDIDATES = named(`select ${COLUMNS} from notifiers n join projects p on ${LIVE}
  join members m on m.project_id = p.id and m.user_id = $1 and m.role in ('owner', 'developer')
  order by p.name, n.name, n.id limit 500`);
const DROP = named('delete from alarm_notifiers where notifier_id <> all($1)');
const ADD = named('insert into alarm_notifiers (notifier_id) select unnest($1::text[]) on conflict do nothing');
const LOCK = named(`select pg_advisory_xact_lock(hashtext('platform-api alarm notifiers'))`);

type ShownAlarm = AlarmRow & { started_at: string };

export interface InstallationAlarms {
  evaluated_at: string | null;
  current: ShownAlarm[];
  past: ShownAlarm[];
  notifiers: AlarmNotifier[];
  candidates: AlarmNotifier[];
  default_receivers: string[];
}

/** @throws role_not_permitted */
export async function loadInstallationAlarms(ctx: Context): Promise<InstallationAlarms> {
  await requireOperator(ctx);
  const { sql, config } = ctx;
  const notifiers = await sql.query<AlarmNotifier>(CHOSEN, []);
  const isMailed = notifiers.length === 0 && config.smtpPorts.length > 0;
  return {
    evaluated_at: await alarmsEvaluatedAt(sql),
    current: (await currentAlarms(sql)).map(shown),
    past: (await pastAlarms(sql)).map(shown),
    notifiers,
    candidates: await candidatesOf(ctx, notifiers),
    default_receivers: isMailed ? await operatorAddresses(sql) : [],
  };
}

const shown = (alarm: AlarmRow): ShownAlarm => ({ ...alarm, started_at: alarm.begun_at });

/** Those that another operator has chosen may stay, though their project is not the caller's. */
async function candidatesOf(ctx: Context, chosen: readonly AlarmNotifier[]): Promise<AlarmNotifier[]> {
  const own = await ctx.sql.query<AlarmNotifier>(CANDIDATES, [sessionUser(ctx).id]);
  return [...own, ...chosen.filter(({ id }) => !own.some((one) => one.id === id))];
}

/** @throws role_not_permitted, validation_failed on `ids` */
export async function chooseAlarmNotifiers(ctx: Context, ids: readonly string[]): Promise<InstallationAlarms> {
  await requireOperator(ctx);
  await ctx.sql.query(LOCK, []);
  const candidates = await candidatesOf(ctx, await ctx.sql.query<AlarmNotifier>(CHOSEN, []));
  if (ids.some((id) => !candidates.some((one) => one.id === id)))
    throw wrongField('ids', 'must be notifiers of projects in which you are at least a developer');
  await ctx.sql.query(DROP, [ids]);
  await ctx.sql.query(ADD, [ids]);
  noteChange(ctx, { type: 'installation', id: 'installation', name: null }, ['alarm_notifiers']);
  return loadInstallationAlarms(ctx);
}
