import { Dialog } from './dialog';
import { leaveNow, leavingWaits } from './unsaved';

/** What is asked before a page is left, and before a dialog is closed. */
const TEXTS = {
  page: {
    title: 'Leave without saving?',
    text: 'What you have changed on this page is not saved, and is lost when you leave.',
    leave: 'Leave',
    stay: 'Stay',
  },
  dialog: {
    title: 'Close without saving?',
    text: 'What you have typed is not saved, and is lost when you close the dialog.',
    leave: 'Discard',
    stay: 'Keep editing',
  },
};

/** Asks before what is not saved is lost. */
export function LeaveQuestion() {
  const waiting = leavingWaits.value;
  if (!waiting) return null;
  const { title, text, leave, stay } = TEXTS[waiting.isDialog ? 'dialog' : 'page'];
  const close = (): void => void (leavingWaits.value = null);
  return (
    <Dialog title={title} onClose={close}>
      <p>{text}</p>
      <footer class="actions">
        <button type="button" class="quiet" onClick={leaveNow}>
          {leave}
        </button>
        <button type="button" autoFocus onClick={close}>
          {stay}
        </button>
      </footer>
    </Dialog>
  );
}
