// Settings of outgoing requests: checks of observers and messages of notifiers.
import { httpUrlSetting, integer, path, probeKey, text } from '../setting_types';

export const outboundSettings = {
  SMTP_URL: text({
    default: null,
    secret: true,
    description:
      'Mail server that all mail goes to in the mode smarthost: smtp://user:password@host:587, or smtps:// for TLS ' +
      'from the start. With SMTP_PORTS=0, messages of notifiers go there.',
  }),
  SMTP_FROM: text({
    default: null,
    derived: 'OWNER_EMAIL',
    description: 'Sender of the mail of the platform itself, "Platform <alerts@example.com>".',
  }),
  PAGERDUTY_URL: httpUrlSetting({
    default: 'https://events.pagerduty.com/v2/enqueue',
    description: 'Where notifiers of the type pagerduty send; the European service has an address of its own.',
  }),
  OUTBOUND_CA_FILE: path({
    default: null,
    description: 'File with roots (PEM) that checks and notifiers trust besides the usual ones.',
  }),
  CHECK_CONCURRENCY: integer({
    default: '2000',
    min: 1,
    max: 20_000,
    description: 'Checks of observers that one process has under way at a time.',
  }),
  CHECK_REFERENCES: text({
    default: null,
    description:
      'Addresses host:port, separated by commas, that nearly always answer. Where the checks of many targets ' +
      'fail at once and none of these answers, the network of the platform is at fault and nobody is alerted.',
  }),
  PROBE_LOST_SECONDS: integer({
    default: '60',
    min: 5,
    max: 3600,
    description: 'Seconds without a word of any probe of a region after which the region has no verdict.',
  }),
  PROBE_URL: httpUrlSetting({
    default: null,
    description: 'For `npm run probe`: URL of the platform that it checks for.',
  }),
  PROBE_KEY: probeKey({
    default: null,
    secret: true,
    description: 'For `npm run probe`: its key, made with `platform probe create --region`.',
  }),
};
