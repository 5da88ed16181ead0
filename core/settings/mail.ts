// Settings of mail: submission, delivery and bounces.
import { addresses, hostname, integer, mailPorts, oneOf, path, text } from '../setting_types';

export const mailSettings = {
  SMTP_PORTS: mailPorts({
    default: '2525',
    defaultAsRoot: '587,465,2525',
    description:
      'Ports on which relay zones accept mail. 465, and ports with /tls behind them, begin with TLS; ' +
      'the others offer STARTTLS. 0 switches mail off.',
  }),
  SMTP_LISTEN: addresses({
    default: '127.0.0.1',
    description: 'Addresses on which SMTP_PORTS and MX_PORT listen, separated by commas.',
  }),
  SMTP_HOST: hostname({
    default: null,
    derived: 'smtp. and APPS_DOMAIN',
    description: 'Host name of the mail server: clients send to it, and bounces come back to it as the MX.',
  }),
  SMTP_CERT_FILE: path({
    default: null,
    derived: "one by ACME for SMTP_HOST, else one of the platform's own authority",
    description: 'File with the certificate chain (PEM) of SMTP_HOST. It is reloaded when it changes.',
  }),
  SMTP_KEY_FILE: path({ default: null, description: 'File with the private key (PEM) of SMTP_CERT_FILE.' }),
  MX_PORT: integer({
    default: '0',
    defaultAsRoot: '25',
    min: 0,
    max: 65535,
    description:
      'Port on which bounces and complaints are received. Other mail servers must reach it as port 25. ' +
      '0: bounces are not received.',
  }),
  MAIL_MODE: oneOf(['sink', 'smarthost', 'direct'], {
    default: null,
    derived: 'smarthost where SMTP_URL is set, else sink',
    description:
      'Where accepted mail goes. sink: it is kept and nothing leaves; smarthost: to SMTP_URL; ' +
      'direct: to the mail servers of the recipients.',
  }),
  MAIL_SPF: text({
    default: null,
    derived: 'a: and SMTP_HOST',
    description: 'SPF mechanism that sending domains must publish, such as include:_spf.example.com for a smarthost.',
  }),
};
