// Loaded into the service of the demo before its program: the check of a delegation starts at the demo's own server.
import { fixedValues } from '../../core/settings/fixed';

const { DEMO_DNS_ROOT: root } = process.env;
if (root) Object.assign(fixedValues, { dnsRoots: [root] });
