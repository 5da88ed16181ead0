// All settings of the program. Read once at start by core/config.ts; `npm start -- --help` prints this table.
import { aiSettings } from './settings/ai';
import { backupSettings } from './settings/backup';
import { backupStoreSettings } from './settings/backup_store';
import { cdnSettings } from './settings/cdn';
import { dnsSettings } from './settings/dns';
import { fileStoreSettings } from './settings/file_store';
import { gitSettings } from './settings/git';
import { hostingSettings } from './settings/hosting';
import { ingressSettings } from './settings/ingress';
import { loginSettings } from './settings/login';
import { mailSettings } from './settings/mail';
import { objectStorageSettings } from './settings/object_storage';
import { outboundSettings } from './settings/outbound';
import { registrySettings } from './settings/registry';
import { releaseSettings } from './settings/releases';
import { serviceSettings } from './settings/service';
import { workloadSettings } from './settings/workloads';

export const settings = {
  ...serviceSettings,
  ...ingressSettings,
  ...dnsSettings,
  ...cdnSettings,
  ...loginSettings,
  ...hostingSettings,
  ...workloadSettings,
  ...backupSettings,
  ...backupStoreSettings,
  ...fileStoreSettings,
  ...mailSettings,
  ...gitSettings,
  ...objectStorageSettings,
  ...outboundSettings,
  ...registrySettings,
  ...releaseSettings,
  ...aiSettings,
};
