// The frame around all pages: the bar at the top, the side bar, and the account of the person.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useAction } from './api/use_query';
import { openKeys, openPalette } from './keyboard';
import { Icon } from './parts/icon';
import { InstallationFoot } from './parts/installation_foot';
import { leaveBy } from './parts/unsaved';
import { logOut, viewer } from './session';
import { Drawer, DrawerButton, SideBar } from './side';
import { setTheme, theme } from './theme';

/** @param isOpen of a page for people who are not logged in: nothing stands around it */
export function Shell({ isOpen, children }: { isOpen: boolean; children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        {!isOpen && <DrawerButton />}
        <a class="brand" href="/">
          <span class="mark" aria-hidden="true" />
          Platform
        </a>
        {!isOpen && (
          <div class="tools">
            <button type="button" class="search-link" aria-haspopup="dialog" onClick={() => openPalette()}>
              <Icon name="search" />
              <span>Search</span> <kbd aria-hidden="true">Ctrl K</kbd>
            </button>
            <PersonMenu />
          </div>
        )}
      </header>
      <div class={isOpen ? '' : 'frame'}>
        {!isOpen && <SideBar />}
        <div class="content">
          {children}
          <InstallationFoot />
        </div>
      </div>
      {!isOpen && <Drawer />}
    </>
  );
}

function PersonMenu() {
  const person = viewer.value?.user;
  // Its room is there from the beginning, so that nothing moves when the answer comes.
  return person ? <OpenPersonMenu name={person.name} email={person.email} /> : <span class="initial" />;
}

function OpenPersonMenu({ name, email }: { name: string; email: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const leaving = useAction(logOut);
  const close = (): void => menu.current?.removeAttribute('open');
  return (
    <details class="menu" ref={menu} onBlur={(event) => closeOutside(event, close)}>
      <summary aria-label={`Account of ${email}`}>
        <span class="initial" aria-hidden="true">
          {name.charAt(0).toUpperCase()}
        </span>
      </summary>
      <div class="menu-list">
        <p>
          <strong>{name}</strong>
          <br />
          <small>{email}</small>
        </p>
        <a href="/settings" onClick={close}>
          <Icon name="person" /> Account and security
        </a>
        {viewer.value?.is_operator && (
          <a href="/installation" onClick={close}>
            <Icon name="installation" /> Installation
          </a>
        )}
        <a href="/resources" onClick={close}>
          <Icon name="resources" /> Catalogs and access
        </a>
        <a href="/v2/docs">
          <Icon name="docs" /> API reference
        </a>
        <button type="button" class="plain" onClick={() => (close(), openKeys())}>
          <Icon name="keyboard" /> Keyboard <kbd>?</kbd>
        </button>
        <button type="button" class="plain" onClick={() => setTheme(theme.value === 'dark' ? 'light' : 'dark')}>
          <Icon name="theme" /> {theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
        </button>
        <button type="button" class="plain" onClick={() => leaveBy(() => void leaving.run())}>
          <Icon name="logOut" /> Log out
        </button>
        {leaving.error && <p role="alert">{leaving.error.message}</p>}
      </div>
    </details>
  );
}

function closeOutside(event: FocusEvent, close: () => void): void {
  const [menu, next] = [event.currentTarget as Element, event.relatedTarget as Element | null];
  if (next && !menu.contains(next)) close();
}
