// Whether a preview has databases of its own. They are made by its job (models/databases/preview_copy.ts), and its
// deployments wait for them.
import type { Application } from '../../applications/application';
import { settingsOf } from '../../applications/application_settings';
import type { PreviewCopies } from '../../deployments/preview_databases';

/** Of a new preview, and of one that is deployed again: each looks at them anew. null: it shares all databases. */
export function copiesOf(application: Pick<Application, 'id' | 'settings'>, fromFork: boolean): PreviewCopies | null {
  // The code of a fork gets no variables.
  if (fromFork) return null;
  return settingsOf(application).previews.databases.some(({ mode }) => mode !== 'share') ? { state: 'waiting' } : null;
}
