// The alarms of the installation in /metrics.
import { Gauge } from 'prom-client';
import type { ControlDatabase } from '../../db/control_database';
import { alarmsEvaluatedAt, currentAlarms, type AlarmRow } from '../../models/observers/installation_alarm';
import { ALARM_NAMES } from '../../models/observers/installation_alarm/alarm_rules';
import type { Metrics } from './admin';

interface AlarmFigures {
  current(): Promise<AlarmRow[]>;
  /** RFC 3339. */
  evaluatedAt(): Promise<string | null>;
}

export function alarmFiguresOf(database: ControlDatabase): AlarmFigures {
  return { current: () => currentAlarms(database), evaluatedAt: () => alarmsEvaluatedAt(database) };
}

/** Adds the alarms, each with its level, and when they were last evaluated. */
export function addAlarmFigures({ registry }: Metrics, figures: AlarmFigures): void {
  new Gauge({
    name: 'platform_alarm',
    help: 'Alarms of the installation: the level of each that lasts, 0 for a name without any',
    labelNames: ['name', 'subject'],
    registers: [registry],
    async collect() {
      const current = await figures.current().catch(() => null);
      this.reset();
      // Without the database nothing is known.
      if (current === null) return;
      for (const name of ALARM_NAMES)
        if (!current.some((alarm) => alarm.name === name)) this.set({ name, subject: '' }, 0);
      for (const { name, subject, level } of current) this.set({ name, subject }, level);
    },
  });
  new Gauge({
    name: 'platform_alarms_evaluated_timestamp_seconds',
    help: 'When the alarms of the installation were last evaluated',
    registers: [registry],
    async collect() {
      const at = await figures.evaluatedAt().catch(() => null);
      this.set(at === null ? NaN : Date.parse(at) / 1000);
    },
  });
}
