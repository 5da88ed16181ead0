import type { ComponentChildren } from 'preact';
import { Page, Waiting } from '../../parts/page';
import { ApiError } from '../../api/client';
import { viewer } from '../../session';

const TRAIL = [{ href: '/installation', label: 'Installation' }];
const NO_ACCESS = new ApiError('not_found', 404, '');

/** A page that is there for operators alone; the API refuses others itself. */
export function OperatorPage({ title, children }: { title: string; children: ComponentChildren }) {
  if (!viewer.value?.is_operator) {
    return (
      <main id="main" tabIndex={-1}>
        <h1>Page not found</h1>
        <Waiting error={NO_ACCESS} />
      </main>
    );
  }
  return (
    <Page title={title} trail={title === 'Installation' ? [] : TRAIL}>
      {children}
    </Page>
  );
}
