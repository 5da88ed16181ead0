// Cron expressions and time zones as people send them, also from reports about GitHub Actions, CronJobs of Kubernetes,
// Heroku Scheduler and Render.
const kept = (text: string): [string, string] => [text, text];
const refused = (text: string): [string, null] => [text, null];

/** Expressions that are refused, and what the message must say. */
export const CRON_MISTAKES: [cron: string, mistake: RegExp][] = [
  ['@reboot', /must be one of @hourly, .+ An application has no start at which it could run$/],
  ['@noon', /must be one of @hourly, @daily/],
  ['@', /must be one of @hourly/],
  ['TZ=Europe/Berlin 0 2 * * *', /must not name a time zone\. Set `time_zone`, such as Europe\/Berlin/],
  ['CRON_TZ=UTC 0 2 * * *', /Set `time_zone`/],
  [
    '0 30 2 * * *',
    /must have five fields \(minute, hour, .+such as 30 2 \* \* \* or @daily\. There is no field for sec/,
  ],
  ['* * * *', /must have five fields/],
  ['2h', /must have five fields/],
  ['', /must have five fields/],
  ['every monday at five', /must have five fields|such as 30 2 \* \* \*/],
  ['0 0 30 2 *', /must name a day that exists: this one is never due/],
  ['0 0 31 4,6,9,11 *', /never due/],
  ['0 0 30W 2 *', /must name a day that exists: this one is never due/],
  ['60 * * * *', /such as 30 2 \* \* \* or @daily: invalid value for minute/],
  ['* 24 * * *', /such as 30 2/],
  ['0 0 0 * *', /such as 30 2/],
  ['0 0 32 * *', /such as 30 2/],
  ['0 0 * 13 *', /such as 30 2/],
  ['0 0 * * 8', /such as 30 2/],
  ['*/0 * * * *', /such as 30 2/],
  ['*/90 * * * *', /such as 30 2/],
  ['10-5 * * * *', /such as 30 2/],
  ['1,,2 * * * *', /such as 30 2/],
  ['H H * * *', /such as 30 2/],
  ['0 0 * * FRI#6', /such as 30 2/],
  ['? ? * * *', /may have digits, names such as MON and JAN/],
  ['0 0 1 * +1', /may have digits/],
  ['0 0 * * *; rm -rf /', /must have five fields/],
  ['0 0 * * MONDAY', /such as 30 2/],
];

/** Per format: texts and their normal form; null = refused. */
export const CRON_CASES: Record<'cron' | 'time_zone', [string, string | null][]> = {
  cron: [
    ...[
      '*/5 * * * *',
      '0 0 * * 0',
      '0 0 * * 7',
      '0 0 29 2 *',
      '0 2 * * *',
      '0 0 1,15 * 5',
      '0-30/10 9-17 * * MON-FRI',
    ].map(kept),
    ...['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'].map(kept),
    ...['0 0 L * *', '0 0 * * 5L', '0 0 * * FRI#2', '0 0 15W * *', '0 0 1 JAN,jul *'].map(kept),
    ['  0   2 * *  * ', '0 2 * * *'],
    ...CRON_MISTAKES.map(([text]) => refused(text)),
  ],
  time_zone: [
    ...['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Argentina/Buenos_Aires'].map(kept),
    ...['Etc/GMT+5', 'EST5EDT'].map(kept),
    ...['', 'Berlin', 'Europe/Atlantis', '+02:00', 'UTC+2', 'Europe/Berlin ', '../etc/passwd', 'local'].map(refused),
  ],
};
