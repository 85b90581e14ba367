(function () {
  var fs = require('fs');
  var hosts = fs.readFileSync('/etc/carbon').toString().split('\n');
  return { graphiteHost: hosts.filter(function (h) { return h; })[0] };
})()
