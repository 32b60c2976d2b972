// Starts every script of the page; each listens on the document, so swapped parts need no wiring.

import { startActions } from "./actions.js";
import { startChrome } from "./chrome.js";
import { startDialogs } from "./dialogs.js";
import { startEnrol } from "./enrol.js";
import { startErrors } from "./errors.js";
import { startForms } from "./forms.js";
import { startLive } from "./live.js";
import { startLogs } from "./logs.js";
import { startRows } from "./rows.js";
import { startSizes } from "./sizes.js";
import { startTheme } from "./theme.js";
import { startTimes } from "./times.js";
import { startToasts } from "./toasts.js";
import { startUnused } from "./unused.js";
import { startWorkspaceForm } from "./workspace-form.js";

startTheme();
startChrome();
startToasts();
startTimes();
startErrors();
startRows();
startSizes();
// The form's own defaults are settled before they are remembered as its original values.
startWorkspaceForm();
startForms();
startActions();
startDialogs();
startUnused();
startEnrol();
startLogs();
startLive();
