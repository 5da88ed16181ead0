// The frame of each page: where one is, its title and actions, and "as API call".
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import type { ApiError } from '../api/client';
import { pageProject, subject, type Tab } from '../place';
import { projectOf } from '../session';
import { ApiCalls } from './api_calls';
import { RoleNote } from './role_note';

export type { Tab };

interface PageProps {
  title: string;
  /** Stands behind the title, such as a status. */
  beside?: ComponentChildren;
  trail?: readonly Tab[];
  /** Pages of the same thing: the side bar shows them. */
  tabs?: readonly Tab[];
  actions?: ComponentChildren;
  projectId?: string | undefined;
  /** Command of `svc` that shows the same. */
  command?: string;
  children: ComponentChildren;
}

export function Page({ title, beside, trail = [], tabs = [], actions, projectId, command, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Dashboard`;
  }, [title]);
  const hrefs = tabs.map(({ href }) => href).join(' ');
  useLayoutEffect(() => void (subject.value = { name: title, sections: tabs }), [title, hrefs]);
  useLayoutEffect(() => {
    if (projectId) pageProject.value = projectId;
  }, [projectId]);
  return (
    <main id="main" tabIndex={-1}>
      <Trail trail={trail} projectId={projectId} />
      <header class="page-head">
        <div class="title">
          <h1>{title}</h1>
          {beside}
        </div>
        <div class="actions">
          <RoleNote projectId={projectId} />
          {actions}
        </div>
      </header>
      {children}
      <ApiCalls projectId={projectId} command={command} />
    </main>
  );
}

function Trail({ trail, projectId }: { trail: readonly Tab[]; projectId: string | undefined }) {
  const project = projectOf(projectId);
  const steps = [
    { href: '/', label: 'Projects' },
    ...(project ? [{ href: `/projects/${project.id}`, label: project.name }] : []),
    ...trail,
  ];
  return (
    <nav class="trail" aria-label="Breadcrumb">
      <ol>
        {steps.map(({ href, label }) => (
          <li key={href}>
            <a href={href}>{label}</a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** What the address names is not there, or not for this person. */
export const isMissing = (error: ApiError | null | undefined): boolean => error?.status === 404;

/** In place of what is not there: an error, or room for what comes. */
export function Waiting({ error, rows = 4 }: { error?: ApiError | null | undefined; rows?: number }) {
  if (error) {
    return (
      <div class="notice bad" role="alert">
        {isMissing(error) ? 'This does not exist, or you have no access to it.' : error.message}
      </div>
    );
  }
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children: ComponentChildren;
  /** Command that does the next step. */
  command?: string;
  action?: ComponentChildren;
}

/** Says the next step where a list has nothing. */
export function Empty({ title, children, command, action }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <p>{children}</p>
      {action && <p>{action}</p>}
      {command && (
        <p class="command">
          On the command line: <code>{command}</code>
        </p>
      )}
    </div>
  );
}

export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section>
      <header class="section-head">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** A table that scrolls by itself where the screen is narrow. */
export function Table({
  label,
  head,
  children,
}: {
  label: string;
  head: readonly string[];
  children: ComponentChildren;
}) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col">
                {title || <span class="off-screen">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? '–'}</dd>
        </div>
      ))}
    </dl>
  );
}
