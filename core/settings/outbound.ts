// Settings of outgoing requests: checks of observers and messages of notifiers.
import { httpUrlSetting, path, probeKey, text } from '../setting_types';

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
    description:
      'URL to which notifiers of the type pagerduty send. The European service of PagerDuty has a different URL.',
  }),
  OUTBOUND_CA_FILE: path({
    default: null,
    description: 'File with additional root certificates (PEM) that checks and notifiers trust.',
  }),
  CHECK_REFERENCES: text({
    default: null,
    description:
      'Reference addresses (host:port, separated by commas) that nearly always answer. If the checks of many ' +
      'targets fail at once and no reference address answers, the network of the platform counts as down and no ' +
      'alerts are sent.',
  }),
  HEARTBEAT_URL: httpUrlSetting({
    default: null,
    secret: true,
    description:
      'URL that gets a request each minute while the alarms of the installation are evaluated. A service elsewhere ' +
      'that misses the requests tells you of what this installation cannot: that it is down.',
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
