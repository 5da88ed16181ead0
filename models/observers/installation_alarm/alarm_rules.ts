// What the alarms of the installation are, and how long each lasts before somebody is told.

/** Of those with several levels, one message tells of each higher one. */
export interface AlarmRule {
  /** In percent; an alarm without them has the level 1 or none. */
  levels: readonly number[];
  /** By how much a value must fall below a level to end it: 79.9 after 80.1 is no end. */
  margin: number;
  /** How long it must last before somebody is told. */
  beginAfterSeconds: number;
  /** How long it must be away before it has ended: a server that restarts again and again is one alarm. */
  endAfterSeconds: number;
}

const MINUTE = 60;
const once = (beginAfterSeconds = 0, endAfterSeconds = 0): AlarmRule => ({
  ...{ levels: [], margin: 0, beginAfterSeconds, endAfterSeconds },
});
const full: AlarmRule = { levels: [80, 90, 95], margin: 2, beginAfterSeconds: 0, endAfterSeconds: 0 };

export const alarmRules = {
  disk: full,
  inodes: full,
  backup: once(),
  backup_proof: once(),
  certificate: once(),
  engine: once(MINUTE, 2 * MINUTE),
  queue: once(0, MINUTE),
  memory: once(MINUTE, MINUTE),
  clock: once(),
  release: once(),
  background: once(10 * MINUTE),
} as const satisfies Record<string, AlarmRule>;

export type AlarmName = keyof typeof alarmRules;
export const ALARM_NAMES = Object.keys(alarmRules) as AlarmName[];

/** At this level nothing more is built and no volume is made. */
export const FULL_LEVEL = 95;

/** What was found. One without `value` is wrong by being there. */
export interface Reading {
  name: AlarmName;
  subject: string;
  /** In percent, for rules with levels. */
  value?: number;
  /** What is wrong, in a few words. */
  title: string;
  /** What to do, in one or two sentences. */
  detail: string;
}

/** The highest level that the value reaches, or that it reached and has not left by the margin; 0: none. */
export function alarmLevelOf(reading: Reading, before: number): number {
  const { levels, margin }: AlarmRule = alarmRules[reading.name];
  if (!levels.length) return 1;
  const { value = 0 } = reading;
  return Math.max(0, ...levels.filter((level) => value >= (level <= before ? level - margin : level)));
}
