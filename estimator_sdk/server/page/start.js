// Start the page. A browser gives up what it loads when a network of the machine comes or goes, though the console is
// on this machine: then the page is loaded once more.

const AGAIN = 1000; // milliseconds

import("./app.js").catch((error) => {
  console.warn(error);
  setTimeout(() => location.reload(), AGAIN);
});
